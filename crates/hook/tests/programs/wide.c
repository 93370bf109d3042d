/* A library with a hundred regions and a runtime that no other library sees. */
int omp_get_num_threads(void);
int teams(void);

#define REGION(n)                                                                                                   \
    static int team_##n(void) {                                                                                     \
        int found = 0;                                                                                              \
        _Pragma("omp parallel") _Pragma("omp single") found = omp_get_num_threads();                                \
        return found;                                                                                               \
    }
#define CALL(n) +team_##n()
#define TEN(act, n)                                                                                                 \
    act(n##0) act(n##1) act(n##2) act(n##3) act(n##4) act(n##5) act(n##6) act(n##7) act(n##8) act(n##9)
#define HUNDRED(act)                                                                                                \
    TEN(act, 0) TEN(act, 1) TEN(act, 2) TEN(act, 3) TEN(act, 4) TEN(act, 5) TEN(act, 6) TEN(act, 7) TEN(act, 8)     \
    TEN(act, 9)

HUNDRED(REGION)

int teams(void) { return 0 HUNDRED(CALL); }
