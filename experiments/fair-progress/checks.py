"""Each claim of the paper as a check. What is a percentage there is a share here."""

import pathlib

from common.checks import Found, mean, percent
from common.sim import load
from programs import BENCHMARKS, MEMORY, WEIGHTS, WORKLOADS
from points import ONE_CORE
from results import CHANCE, FIRST, FOUR, KINDS, TRAINING, Results

HERE = pathlib.Path(__file__).resolve().parent
TITLE = "paper on fair-progress scheduling"
NAMES = list(WORKLOADS)
# Words that the paper leaves open: "almost perfect" fairness, and coverage that is "similar".
PERFECT, SIMILAR = 1.03, 0.3
# A segment that is "never slowed much", or "hardly", has at least this much of its speed alone.
HARDLY = 0.9
TABLE_6 = load(HERE / "paper.toml")["table-6"]


def over(what, setup, policy, names=NAMES):
    """The mean of a figure over workloads."""
    return mean(what(name, setup, policy) for name in names)


def named(slowdowns, name):
    """Of the first program of this benchmark."""
    return next(value for program, value in slowdowns.items() if program.rsplit("-", 1)[0] == name)


def elimination(setup, before, after, share):
    """Figure 6 in one set-up."""

    def check(fig):
        under, fps = (over(fig.unfairness, setup, policy) for policy in ("OS", "unlimited"))
        gone = over(fig.eliminated, setup, "unlimited")
        better = sum(fig.unfairness(name, setup, "unlimited") < fig.unfairness(name, setup, "OS") for name in NAMES)
        words = f"{under:.2f}, {fps:.2f}; {percent(gone)} eliminated; better in {better} of 10"
        # An unfairness of 1 is none: what is above it is compared.
        return Found(words, [fps < under, better == 10], [(under - 1, before - 1), (fps - 1, after - 1), (gone, share)])

    return check


def loss(setup, expected):
    def check(fig):
        turnaround, weighted = (over(what, setup, "unlimited") for what in (fig.turnaround, fig.speedup))
        return Found(f"turnaround {percent(turnaround)}, EWSpeedup {percent(weighted)}",
                     [turnaround < 0], [(turnaround, expected)])

    return check


def table_6(what, policy, setups):
    return [over(what, setup, policy, MEMORY) for setup in setups]


def row(setup, name):
    """A row of table 6: of each limit its unfairness, cost and turnaround, and whether sharing out helped."""
    under, *limits = TABLE_6[setup][name]

    def check(fig):
        before = fig.unfairness(name, setup, "OS")
        words, orders, sizes = [f"OS {before:.2f}"], [], [(before - 1, under - 1)]
        for policy, (expected, cost, turnaround, weighted, apart) in zip(("unlimited", "2%"), limits):
            found, alone = (fig.unfairness(name, setup, which) for which in (policy, f"{policy} ND"))
            spent, lost = fig.overhead(name, setup, policy), fig.turnaround(name, setup, policy)
            lost_by_cycles = fig.speedup(name, setup, policy)
            words.append(f"{policy}: {found:.2f} ({percent(-fig.eliminated(name, setup, policy))}), cost {percent(spent)}, "
                         f"turnaround {percent(lost)}, EWSpeedup {percent(lost_by_cycles)}, not shared out {alone:.2f}")
            orders += [found < before, (alone > found) == (apart > expected)]
            sizes += [(found - 1, expected - 1), (spent, cost / 100), (lost, turnaround / 100), (lost_by_cycles, weighted / 100)]
        return Found("; ".join(words), orders, sizes)

    return check


def averages(setup):
    """The last row of a set-up."""
    rows_of = TABLE_6[setup].values()

    def check(fig):
        before = over(fig.unfairness, setup, "OS", MEMORY)
        words, orders, sizes = [f"OS {before:.2f}"], [], [(before - 1, mean(row[0] for row in rows_of) - 1)]
        for place, policy in enumerate(("unlimited", "2%"), 1):
            found = over(fig.unfairness, setup, policy, MEMORY)
            lost = over(fig.turnaround, setup, policy, MEMORY)
            words.append(f"{policy}: {found:.2f} ({percent(-over(fig.eliminated, setup, policy, MEMORY))}), "
                         f"turnaround {percent(lost)}")
            orders.append(found < before)
            sizes += [(found - 1, mean(row[place][0] for row in rows_of) - 1),
                      (lost, mean(row[place][2] for row in rows_of) / 100)]
        return Found("; ".join(words), orders, sizes)

    return check


def low_contention(kind):
    """Segments of one kind with caches of their own, against those of no kind."""

    def check(fig):
        found = fig.segments("PC")
        own, rest = found[kind], found["rest"]
        return Found(f"of {len(own)} segments the slowest {min(own):.2f} x, mean {mean(own):.3f}; of {len(rest)} others "
                     f"{min(rest):.2f} x, mean {mean(rest):.3f}", [min(own) > HARDLY, mean(own) > mean(rest)])

    return check


class Claims(Results):
    """A point's figures, and a check for each claim."""

    def claim_01(self):
        found = self.slowdowns(FIRST[0], "PC", "OS")
        perl, bwaves, libquantum = (named(found, name) for name in ("perl", "bwaves", "libquantum"))
        return Found(f"perl {perl:.2f}, bwaves {bwaves:.2f}, libquantum {libquantum:.2f} x", [perl < bwaves < libquantum],
                     [(perl, 1.10), (bwaves, 1.19), (libquantum, 1.62)])

    def claim_02(self):
        before, after = (named(self.slowdowns(mix, "PC", "OS"), "bwaves") for mix in FIRST)
        return Found(f"{before:.2f} and {after:.2f} x", [after > before], [(after, 1.47)])

    claim_03, claim_04, claim_05 = map(low_contention, KINDS)

    def claim_06(self):
        own, shared = ({kind: mean(speeds) for kind, speeds in self.segments(setup).items()} for setup in ("PC", "SC-1"))
        words = "mean speed, own and shared caches: " + ", ".join(
            f"{kind} {own[kind]:.3f} and {shared[kind]:.3f}" for kind in own)
        return Found(words, [shared["all"] < own["all"], *(shared[kind] < own[kind] for kind in KINDS),
                             *(shared[kind] > HARDLY for kind in KINDS)])

    claim_08 = elimination("PC", 1.14, 1.06, 0.535)
    claim_09 = loss("PC", -0.011)
    claim_10 = elimination("SC-1", 1.22, 1.08, 0.650)
    claim_11 = loss("SC-1", -0.0206)
    claim_12 = elimination("SC-2", 1.29, 1.10, 0.658)
    claim_13 = loss("SC-2", -0.0112)

    def claim_14(self):
        worst, optimal = (min(over(what, setup, policy) for what in (self.turnaround, self.speedup) for setup in FOUR)
                          for policy in ("unlimited", "optimal"))
        return Found(f"{percent(worst)}, the optimal policy {percent(optimal)}", [worst > -0.03], [(worst, -0.02)])

    def claim_15(self):
        worst = max(self.unfairness(name, setup, "optimal") for name in NAMES for setup in FOUR)
        best = all(over(self.turnaround, setup, "optimal") >= over(self.turnaround, setup, "unlimited") for setup in FOUR)
        average = mean(over(self.unfairness, setup, "optimal") for setup in FOUR)
        return Found(f"unfairness {average:.3f}, at most {worst:.3f}; throughput {'' if best else 'not '}the best",
                     [worst < PERFECT, best])

    def claim_16(self):
        found = [over(self.unfairness, setup, "OS") for setup in (*FOUR, "8core")]
        return Found(", ".join(f"{value:.2f}" for value in found), [a < b for a, b in zip(found, found[1:])])

    def claim_17(self):
        unfair = [self.unfairness(name, "SC-2", "OS") for name in NAMES]
        found = self.slowdowns("WL#03", "SC-2", "OS")
        light, loud = mean(unfair[:5]), mean(unfair[5:])
        words = (f"unfairness {light:.2f} in the lighter five, {loud:.2f} in the others; "
                 f"WL#03: libquantum {named(found, 'libquantum'):.2f} x, least {min(found.values()):.2f} x")
        return Found(words, [light < loud], [(named(found, "libquantum") / min(found.values()), 1.99 / 1.1)])

    def claim_18(self):
        estimated, without = (mean(mean(self.accuracies(name, "SC-2", "unlimited", key).values()) for name in NAMES)
                              for key in ("accuracy", "accuracy_without"))
        return Found(f"{percent(estimated)}, without estimates {percent(without)}", [estimated > without], [(estimated, 0.90)])

    def claim_19(self):
        found = {name: mean(estimates["phase_deviation"] or 0.0
                            for estimates in self.of("in turn", name, ONE_CORE)["estimates"].values()) for name in BENCHMARKS}
        worst, average = max(found, key=found.get), mean(found.values())
        return Found(f"{percent(average)}, most {percent(found[worst])} ({worst})", [], [(average, 0.05)])

    def part(self, kinds, names=NAMES):
        """The mean share of quanta with a speed alone from these sources, on one chip."""
        return mean(mean(self.shares(name, "SC-2", "unlimited", kinds).values()) for name in names)

    def claim_20(self):
        chance, trained = self.part(CHANCE), self.part(TRAINING)
        return Found(f"{percent(chance + trained)}: {percent(chance)} by chance, {percent(trained)} trained",
                     [], [(chance + trained, 0.90), (chance, 0.60), (trained, 0.30)])

    def claim_21(self):
        light, loud = self.part(CHANCE, NAMES[:5]), self.part(CHANCE, NAMES[5:])
        return Found(f"{percent(light)} in the lighter five, {percent(loud)} in the others", [light > loud])

    def claim_22(self):
        gains = [[self.contribution(name, "SC-2", "unlimited", kinds) for kinds in (TRAINING, CHANCE)] for name in NAMES]
        most = sum(trained > chance for trained, chance in gains)
        average, trained = mean(trained for trained, _ in gains), self.part(TRAINING)
        words = (f"{percent(average)} of the gain by {percent(trained)} of the quanta; "
                 f"more than chance in {most} of 10 workloads")
        return Found(words, [most > 5, average > trained])

    def claim_23(self):
        leslie = lambda figure, policy: named(figure("WL#03", "SC-2", policy), "leslie")
        known = lambda name, setup, policy: self.shares(name, setup, policy, CHANCE + TRAINING)
        policies = ("no sequences", "unlimited")
        (off, on), (wrong, right) = ([leslie(figure, policy) for policy in policies] for figure in (known, self.accuracies))
        gain = self.contribution("WL#03", "SC-2", "unlimited", ("sequential",), "leslie")
        words = (f"{percent(gain)} of the gain; coverage {percent(off)} to {percent(on)}, "
                 f"accuracy {percent(wrong)} to {percent(right)}")
        return Found(words, [on > off, right > wrong], [(gain, 0.288), (off, 0.882), (on, 0.937)])

    def claim_24(self):
        count = lambda name, policy: self.of(name, "SC-2", policy)["predicted"] + self.of(name, "SC-2", policy)["sequential"]
        on, off = (mean(count(name, policy) for name in NAMES) for policy in ("unlimited", "no sequences"))
        right, wrong = (mean(mean(self.accuracies(name, "SC-2", policy).values()) for name in NAMES)
                        for policy in ("unlimited", "no sequences"))
        programs = sum(len(self.of(name, "SC-2", "unlimited")["sequences"]) for name in NAMES)
        words = f"{programs} programs; accuracy {100 * (right - wrong):+.1f} %, training quanta {percent(on / off - 1)}"
        return Found(words, [programs > 0, right > wrong, on < off],
                     [(programs, 9), (right - wrong, 0.021), (on / off, 0.89)])

    def claim_25(self):
        run = self.of("WL#03", "SC-2", "unlimited")
        share, cost = (run["predicted"] + run["sequential"]) / run["quanta"], self.overhead("WL#03", "SC-2", "unlimited")
        most = max(self.overhead(name, "SC-2", "unlimited") for name in NAMES)
        return Found(f"{percent(share)} of quanta, {percent(cost)}", [cost == most], [(share, 0.259), (cost, 0.045)])

    def claim_26(self):
        runs = [self.of(name, "SC-2", "unlimited") for name in NAMES]
        quanta, predicted, sequential = (mean(run[key] for run in runs) for key in ("quanta", "predicted", "sequential"))
        parallel = mean(4 - mean(run["idle"]) for run in runs if run["idle"])
        cost = over(self.overhead, "SC-2", "unlimited")
        words = f"mean {predicted:.0f} + {sequential:.1f} of {quanta:.0f} quanta, parallelism {parallel:.1f}, cost {percent(cost)}"
        return Found(words, [], [(quanta, 423.2), (predicted, 53), (sequential, 7.2), (parallel, 2.8), (cost, 0.016)])

    def claim_27(self):
        costs = [self.overhead(name, "SC-2", "unlimited") for name in NAMES]
        light, loud = mean(costs[:5]), mean(costs[5:])
        return Found(f"{percent(light)} in the lighter five, {percent(loud)} in the others", [light < loud])

    def claim_28(self):
        found = over(self.unfairness, "8core", "OS")
        return Found(f"{found:.2f}", [], [(found - 1, 0.55)])

    def claim_29(self):
        gone, cost = over(self.eliminated, "8core", "none"), over(self.turnaround, "8core", "none")
        return Found(f"{percent(gone)} eliminated, turnaround {percent(cost)}", [gone > 0, cost > -0.01], [(gone, 0.15)])

    def claim_30(self):
        gone, cost = over(self.eliminated, "8core", "unlimited"), over(self.turnaround, "8core", "unlimited")
        return Found(f"{percent(gone)} eliminated, turnaround {percent(cost)}",
                     [gone > 0, cost < 0], [(gone, 0.70), (cost, -0.045)])

    def claim_31(self):
        fair = [over(self.eliminated, "8core", policy) for policy in ("none", "2%", "unlimited")]
        cost = [over(self.turnaround, "8core", policy) for policy in ("none", "2%", "unlimited")]
        words = (f"no training, 2 %, no limit: "
                 f"eliminated {', '.join(map(percent, fair))}; turnaround {', '.join(map(percent, cost))}")
        return Found(words, [fair == sorted(fair), cost == sorted(cost, reverse=True)])

    def claim_32(self):
        four = mean(over(self.turnaround, setup, "unlimited") for setup in FOUR)
        eight = over(self.turnaround, "8core", "unlimited")
        return Found(f"{percent(four)} and {percent(eight)}", [eight < four])

    def claim_33(self):
        four, (eight,) = mean(table_6(self.eliminated, "2%", FOUR)), table_6(self.eliminated, "2%", ["8core"])
        cost = mean(table_6(self.turnaround, "2%", (*FOUR, "8core")))
        return Found(f"4 cores {percent(four)}, 8 cores {percent(eight)} eliminated, turnaround {percent(cost)}",
                     [four > 0, eight > 0],
                     [(four, 0.452), (eight, 0.211)])

    def claim_35(self):
        found = self.slowdowns("WL-M", "PC", "OS")
        least, most = min(found, key=found.get), max(found, key=found.get)
        words = f"{found[most]:.2f} x ({most}) to {found[least]:.2f} x ({least}), unfairness {found[most] / found[least]:.2f}"
        # The paper's slowdowns leave out that ten programs share four cores: what they are relative to each other is compared.
        return Found(words, [most.startswith("libquantum"), least.startswith("milc")], [(found[most] / found[least] - 1, 0.13)])

    def claim_36(self):
        found = [(self.unfairness("WL-M", setup, "OS"), over(self.unfairness, setup, "OS")) for setup in (*FOUR, "8core")]
        return Found(", ".join(f"{one:.2f} ({mixed:.2f})" for one, mixed in found), [one < mixed for one, mixed in found],
                     [(one - 1, expected - 1) for (one, _), expected in zip(found, (1.13, 1.12, 1.17, 1.25))])

    def claim_37(self):
        found = {setup: [self.unfairness(name, setup, "OS") for name in MEMORY] for setup in (*FOUR, "8core")}
        words = "; ".join(f"{setup}: " + ", ".join(f"{value:.2f}" for value in values) for setup, values in found.items())
        return Found(words, [values == sorted(values) for values in found.values()], [(found["8core"][-1] - 1, 3.08)])

    def claim_38(self):
        found = table_6(self.eliminated, "unlimited", (*FOUR, "8core"))
        return Found(", ".join(map(percent, found)),
                     [value > 0 for value in found], list(zip(found, (0.597, 0.660, 0.614, 0.711))))

    def claim_39(self):
        found = mean(self.coverages("WL-M", "SC-2", "none").values())
        return Found(percent(found), [found < 0.05])

    def claim_40(self):
        cost = table_6(self.overhead, "unlimited", (*FOUR, "8core"))
        lost = table_6(self.turnaround, "unlimited", (*FOUR, "8core"))
        return Found(f"cost {', '.join(map(percent, cost))}; turnaround {', '.join(map(percent, lost))}",
                     [0.05 <= value <= 0.35 for value in cost] + [-0.17 <= value <= -0.04 for value in lost])

    def claim_41(self):
        found = table_6(self.eliminated, "2%", (*FOUR, "8core"))
        return Found(", ".join(map(percent, found)),
                     [value > 0 for value in found], list(zip(found, (0.358, 0.440, 0.558, 0.211))))

    def claim_42(self):
        gain = lambda policy: mean(
            self.unfairness(name, setup, f"{policy} ND") - self.unfairness(name, setup, policy)
            for setup in FOUR for name in MEMORY
        )
        free, limited = gain("unlimited"), gain("2%")
        return Found(f"unfairness without it higher by {free:.3f} without a limit, {limited:.3f} with 2 %",
                     [limited > 0, limited > free])

    def claim_43(self):
        found = self.slowed("WL-M", "SC-2", "OS")
        least, most = min(found, key=found.get), max(found, key=found.get)
        return Found(f"{found[most]:.2f} x ({most}) to {found[least]:.2f} x ({least}) lower",
                     [most.startswith("libquantum"), least.startswith("milc")],
                     [(named(found, "libquantum"), 3.20), (named(found, "milc"), 2.15)])

    def claim_44(self):
        found = self.coverages("WL-M", "SC-2", "2% ND").values()
        unfair, shared = (self.unfairness("WL-M", "SC-2", policy) for policy in ("2% ND", "2%"))
        words = f"coverage {percent(min(found))} to {percent(max(found))}, unfairness {unfair:.2f}"
        return Found(words, [max(found) - min(found) > SIMILAR, unfair > shared], [(unfair - 1, 0.53)])

    def claim_45(self):
        found = self.coverages("WL-M", "SC-2", "2%").values()
        unfair = self.unfairness("WL-M", "SC-2", "2%")
        words = f"coverage {percent(min(found))} to {percent(max(found))}, unfairness {unfair:.2f}"
        return Found(words, [max(found) - min(found) < SIMILAR], [(unfair - 1, 0.13)])

    def by_weight(self, policy):
        """The speed of each benchmark under the same load throughout, relative to that of gamess, and in words."""
        times = self.of("weights, again and again", "SC-1", policy)["times"]
        found = {name: mean(self.alone(name, "SC-1") / times[f"{name}-{number}"] for number in (0, 1)) for name in WEIGHTS}
        speeds = {name: speed / found["gamess"] for name, speed in found.items() if name != "gamess"}
        return speeds, "against gamess (1) " + ", ".join(f"{name} ({WEIGHTS[name]}) {speeds[name]:.2f} x" for name in speeds)

    def claim_46(self):
        speeds, words = self.by_weight("OS with weights")
        cactus, bwaves = speeds["cactusADM"], speeds["bwaves"]
        return Found(words, [cactus < 1, bwaves < 1], [(1 - cactus, 0.21), (bwaves, 0.985)])

    def claim_47(self):
        speeds, against = self.by_weight("unlimited")
        times = self.of("weights", "SC-1", "unlimited")["times"]
        ends = {name: mean(times[f"{name}-{number}"] for number in (0, 1)) for name in WEIGHTS}
        words = "seconds to the end by weight: " + ", ".join(f"{name} ({WEIGHTS[name]}) {ends[name]:.1f}" for name in WEIGHTS)
        order = ends["soplex"] < ends["bwaves"] < min(ends["gamess"], ends["cactusADM"])
        return Found(f"{against}; {words}", [order, abs(ends["gamess"] / ends["cactusADM"] - 1) < 0.05],
                     [(speed, WEIGHTS[name]) for name, speed in speeds.items()])


for start, setup_name in zip((49, 55, 61, 67), TABLE_6):
    for offset, member in enumerate(TABLE_6[setup_name]):
        setattr(Claims, f"claim_{start + offset}", row(setup_name, member))
    setattr(Claims, f"claim_{start + 5}", averages(setup_name))
