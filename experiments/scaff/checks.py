"""The claims as checks of a point's results."""

from common.checks import Found
from common.checks import each as each_of
from points import NAS
from results import Results

PLANNED = ["gang", "greedy", "cgreedy", "minwait"]
SPACE = ["greedy", "cgreedy", "minwait"]
GANGS = [
    {"IS", "syr2k"}, {"cholesky", "BT"}, {"jacobi-2d-imper", "fdtd-apml"},
    {"mvt", "LU"}, {"gemver", "atax", "CG"}, {"FT"},
]


def times(x):
    return f"{x:.2f} x"


def each(values, form="{:.2f}"):
    return each_of(values, form.format)


def named(names):
    return ", ".join(names) or "none"


def most(parts, share=0.5):
    parts = list(parts)
    return sum(parts) > share * len(parts)


def in_order(values, order):
    """Each neighbouring pair of the order, whether it is so by more than half a percent."""
    return [values[a] < 0.995 * values[b] for a, b in zip(order, order[1:])]


def placements(fig, workload, policies=PLANNED):
    return {policy: fig.total(workload, policy, "packed") / fig.total(workload, policy) for policy in policies}


class Claims(Results):
    """A point's figures, and a check for each claim."""

    def claim_01(self):
        gains = {name: self.nas[name][8] / self.nas[name][24] for name in NAS}
        lu = self.nas["LU"][1] / self.nas["LU"][16]
        words = f"24 threads against 8: {each(gains)}; LU with 16 threads: {lu:.2f}"
        return Found(words, [most((gain < 1.5 for gain in gains.values()), 0.79), lu < 8])

    def claim_02(self):
        lost = [self.rate[count, "linux"] for count in (4, 8, 12)]
        kept = [self.rate[count, "gang"] for count in (4, 8, 12)]
        words = (
            "programs' seconds alone per second, with 30, 60 and 126 threads: "
            f"Linux {lost[0]:.2f}, {lost[1]:.2f}, {lost[2]:.2f}; GANG {kept[0]:.2f}, {kept[1]:.2f}, {kept[2]:.2f}"
        )
        return Found(words, [lost[0] > lost[2], min(kept) > 0.8 * max(kept)])

    def claim_03(self):
        ratio = self.total("whole", "linux") / self.total("whole", "gang")
        gains = {
            name: program["total"] / self.of("whole", "gang")[name]["total"]
            for name, program in self.of("whole", "linux").items()
        }
        slower = [name for name, gain in gains.items() if gain < 1 / 1.5]
        much = [name for name, gain in gains.items() if gain > 1.5]
        words = f"{times(ratio)}; more than 1.5 x as fast: {len(much)}; slower by more than 1.5 x: {named(slower)}"
        return Found(words, [ratio > 1, 0 < len(much) <= 6, not slower], [(ratio, 3)])

    def claim_04(self):
        speedups = {name: stream[1] / stream[24] for name, stream in self.stream.items()}
        ordered = [speedups[f"stream-{share}"] for share in (100, 80, 60, 40, 20)]
        return Found(f"speedups with 24 threads: {each(speedups)}", [ordered == sorted(ordered)])

    def claim_05(self):
        stream = self.stream["stream-20"]
        speedups = {threads: stream[1] / stream[threads] for threads in (8, 16, 24)}
        return Found(f"speedups: {each(speedups)}", [speedups[n] > 0.9 * n for n in speedups])

    def claim_06(self):
        stream = self.stream["stream-100"]
        share = stream[24] / stream[8]
        return Found(f"{100 * share:.0f} % of the bandwidth of 24 threads is there with 8", [share > 0.9])

    def claim_07(self):
        found = self.beside(100, 80)
        return Found(times(found), [found > 1], [(found, 2.0)])

    def claim_08(self):
        pair, triple = self.beside(100, 80), self.beside(100, 60, 20)
        return Found(f"{times(triple)}, beside stream-80 {times(pair)}", [triple > pair], [(triple, 2.4)])

    def claim_09(self):
        pair, triple = self.beside(20, 100), self.beside(20, 40, 20)
        return Found(f"{times(pair)}, {times(triple)}", [triple > pair], [(pair, 1.5), (triple, 1.93)])

    def claim_10(self):
        pair, triple = self.beside(20, 100), self.beside(20, 20, 20)
        return Found(f"two stream-20: {times(triple)}; one stream-100: {times(pair)}", [triple > pair])

    def claim_11(self):
        # Every pair against every triple with co-runners that have as much traffic together or less.
        shares = (20, 40, 60, 80, 100)
        cases = [
            self.beside(own, b, c) > self.beside(own, a)
            for own in shares for a in shares for b in shares for c in shares
            if b >= c and b + c <= a
        ]
        share = sum(cases) / len(cases)
        words = f"two co-runners slow more than one with as much traffic or more in {sum(cases)} of {len(cases)} cases"
        return Found(words, [share > 0.5, share > 0.9])

    def claim_12(self):
        pair, triple = self.beside(100, 100), self.beside(100, 100, 100)
        return Found(f"{times(pair)}, {times(triple)}", [pair <= 2.02, triple <= 3.03])

    def claim_13(self):
        ratio = self.ratio("gang", "alone")
        return Found(f"packed / spread: {each(ratio)}", [most(x > 1.02 for x in ratio.values())])

    def claim_14(self):
        more = {pol: self.isolation(pol) for pol in ("greedy",)}
        words = f"slowed more spread than packed, GREEDY: {more['greedy']} of 12"
        return Found(words, [more["greedy"] >= 10])

    def claim_15(self):
        stream = self.stream["stream-100"]
        found = {threads: stream[1] / stream[threads] for threads in (2, 4)}
        return Found(each(found), [found[4] > 3.2])

    def claim_16(self):
        stream = self.packed_stream
        found = {threads: stream[1] / stream[threads] for threads in (2, 6, 7, 8)}
        return Found(each(found), [found[6] < 1.25, found[7] > 1.1 * found[6]])

    def claim_17(self):
        return Found(f"{self.six['gang']} and {self.six['greedy']}", [self.six["gang"] == 4, self.six["greedy"] == 3])

    def claim_21(self):
        totals = {policy: self.total("whole", policy) for policy in ["linux", *PLANNED]}
        ratio = totals["linux"] / totals["gang"]
        slowest = max(PLANNED, key=totals.get) == "gang"
        return Found(f"{times(ratio)}; seconds: {each(totals)}", [ratio > 1, slowest], [(ratio, 3)])

    def claim_22(self):
        totals = {policy: self.total("whole", policy) for policy in PLANNED}
        ratio = self.total("whole", "linux") / totals["minwait"]
        gain = totals["gang"] / totals["minwait"]
        fastest = min(totals, key=totals.get)
        words = f"{times(ratio)}; fastest is {fastest}; GANG / MINWAIT {times(gain)} (there 2 x)"
        return Found(words, [ratio > 1, fastest == "minwait"], [(ratio, 6)])

    def claim_23(self):
        ratio = self.total("whole", "cgreedy") / self.total("whole", "greedy")
        return Found(f"CGREEDY / GREEDY {times(ratio)}", [ratio >= 1])

    def claim_24(self):
        running = {policy: self.field("whole", policy, "running") for policy in PLANNED}
        wrong = [n for n, t in running["gang"].items() if any(running[p][n] < 0.98 * t for p in SPACE)]
        return Found(f"exceptions: {named(wrong)}", [not wrong])

    def claim_25(self):
        ratio = self.against("minwait", "gang", "running")
        worst = max(ratio, key=ratio.get)
        return Found(f"{times(ratio[worst])} ({worst})", [worst == "atax"], [(ratio[worst], 14)])

    def claim_26(self):
        greedy, minwait = (sum(self.field("whole", p, "running").values()) for p in ("greedy", "minwait"))
        return Found(f"sum under GREEDY / MINWAIT {times(greedy / minwait)}", [greedy < minwait, greedy < 0.75 * minwait])

    def claim_27(self):
        ratio = self.against("cgreedy", "greedy", "running")
        lower = sum(x < 1 for x in ratio.values())
        gain = {name: 1 - ratio[name] for name in ("atax", "gemver")}
        words = f"lower for {lower} of 12; atax {100 * gain['atax']:.0f} %, gemver {100 * gain['gemver']:.0f} %"
        top = sorted(ratio, key=ratio.get)[:2]
        return Found(words, [lower >= 9, set(top) == {"atax", "gemver"}],
                     [(gain["atax"], 0.96), (gain["gemver"], 0.68)])

    def claim_28(self):
        ratio = self.against("minwait", "greedy", "total")
        others = [x for name, x in ratio.items() if name not in ("BT", "IS", "atax", "mvt")]
        words = f"MINWAIT / GREEDY: {each(ratio)}"
        return Found(words, [ratio["BT"] < 0.8 and ratio["IS"] < 0.8, ratio["atax"] > 1.05 and ratio["mvt"] > 1.05,
                             most(x <= 1.05 for x in others)])

    def claim_29(self):
        names = ("CG", "atax", "fdtd-apml")
        best = [n for n in names if min(SPACE, key=lambda policy: self.of("whole", policy)[n]["total"]) == "cgreedy"]
        ratio = self.against("cgreedy", "greedy", "total")
        words = f"CGREEDY / GREEDY: {each({name: ratio[name] for name in names})}; lowest of the three: {named(best)}"
        return Found(words, [ratio[name] < 1 for name in names])

    def claim_30(self):
        waits = {policy: self.runs["whole", policy, "spread"]["wait"] for policy in PLANNED}
        longest, shortest = max(waits, key=waits.get), min(waits, key=waits.get)
        return Found(f"seconds: {each(waits)}", [longest == "gang", shortest == "minwait"])

    def claim_31(self):
        waits = self.field("whole", "minwait", "wait")
        others = [x for name, x in waits.items() if name not in ("BT", "IS")]
        return Found(f"seconds: {each(waits)}", [max(waits["BT"], waits["IS"]) < 0.8 * min(others)])

    def claim_32(self):
        spread = {policy: self.runs["whole", policy, "spread"]["fairness"] for policy in PLANNED}
        return Found(f"F: {each(spread, '{:.4f}')}", in_order(spread, ["gang", "cgreedy", "greedy", "minwait"]))

    def claim_33(self):
        use = {policy: self.runs["whole", policy, "spread"]["use"] for policy in PLANNED}
        words = f"{each(use, '{:.3f}')}; packed as listed, GREEDY and CGREEDY tie at 87.5 %"
        return Found(words, in_order(use, ["gang", "cgreedy", "greedy", "minwait"]))

    def claim_34(self):
        found = set(self.gangs("greedy"))
        expected = {frozenset(gang) for gang in GANGS}
        return Found("exactly these" if found == expected else f"{sorted(map(sorted, found))}", [found == expected])

    def claim_35(self):
        sizes = {policy: max(map(len, self.gangs(policy))) for policy in ("cgreedy", "minwait")}
        return Found(f"at most {sizes['cgreedy']} and {sizes['minwait']}", [sizes["cgreedy"] <= 2, sizes["minwait"] > 2])

    def claim_37(self):
        totals = {policy: self.total("memory", policy) for policy in ["linux", *PLANNED]}
        beaten = [policy for policy in PLANNED if totals[policy] < totals["linux"]]
        words = f"seconds: {each(totals)}; sooner than Linux: {named(beaten)}"
        return Found(words, ["minwait" in beaten, beaten in ([], ["minwait"])])

    def claim_38(self):
        use = {policy: self.runs["memory", policy, "spread"]["use"] for policy in ("linux", "minwait")}
        return Found(each(use), [use["minwait"] > 0.9, use["minwait"] > 0.9 * use["linux"]])

    def claim_39(self):
        ratio = [sum(self.field("memory", p, "running").values()) for p in ("cgreedy", "greedy")]
        return Found(f"CGREEDY / GREEDY {times(ratio[0] / ratio[1])}", [0.85 <= ratio[0] / ratio[1] <= 1.0])

    def claim_40(self):
        greedy, minwait = (self.runs["memory", policy, "spread"] for policy in ("greedy", "minwait"))
        words = (f"GREEDY, MINWAIT: use {greedy['use']:.2f}, {minwait['use']:.2f}; wait {greedy['wait']:.2f}, "
                 f"{minwait['wait']:.2f} s; total {greedy['total']:.2f}, {minwait['total']:.2f} s")
        orders = [greedy["use"] < minwait["use"], greedy["wait"] > minwait["wait"], greedy["total"] > minwait["total"]]
        return Found(words, orders)

    def claim_41(self):
        ratio = placements(self, "whole")
        return Found(f"packed / spread: {each(ratio)}", [x > 1 for x in ratio.values()], [(ratio["gang"], 2)])

    def claim_42(self):
        ratio = placements(self, "cpu", ["gang", "greedy"])
        return Found(f"packed / spread: {each(ratio)}", [abs(x - 1) < 0.05 for x in ratio.values()])

    def claim_43(self):
        ratio, whole = placements(self, "memory"), placements(self, "whole")
        orders = [all(x > 1 for x in ratio.values()), most(ratio[policy] < whole[policy] for policy in PLANNED)]
        return Found(f"packed / spread: {each(ratio)}", orders)

    def claim_44(self):
        counts = {policy: self.isolation(policy) for policy in SPACE}
        return Found(f"closer to alone packed, of 12: {each(counts, '{}')}", [count > 6 for count in counts.values()])

    def claim_45(self):
        spread, packed = (self.field("whole", "gang", "speed", placement) for placement in ("spread", "packed"))
        differences = [abs(packed[name] / spread[name] - 1) for name in spread]
        mean = sum(differences) / len(differences)
        words = f"alone / turnaround differs by {100 * mean:.1f} % on average, at most {100 * max(differences):.1f} %"
        return Found(words, [mean < 0.05, max(differences) < 0.1])

    def claim_46(self):
        ratio = self.ratio("minwait", "total")
        slower = ("IS", "atax", "mvt", "gemver")
        others = [x for name, x in ratio.items() if name not in slower]
        gains = sorted(ratio, key=ratio.get)[:2]
        return Found(f"packed / spread: {each(ratio)}",
                     [most(x > 1 for x in others), all(ratio[name] < 1 for name in slower), set(gains) == {"atax", "mvt"}])

    def claim_47(self):
        slowed = {}
        for policy in SPACE:
            programs = self.of("whole", policy, "packed").values()
            slowed[policy] = sum(p["running"] / p["alone"] for p in programs) / len(programs)
        return Found(f"mean running / alone, packed: {each(slowed, '{:.3f}')}",
                     [slowed["cgreedy"] < slowed["greedy"], slowed["minwait"] < slowed["greedy"]])

    def claim_48(self):
        words, orders = [], []
        for policy in ("greedy", "minwait"):
            packed, spread = (self.numa[policy, placement] for placement in ("packed", "spread"))
            mean = [sum(p["running"] / p["alone"] for p in r["programs"].values()) / 12 for r in (packed, spread)]
            words.append(f"{policy}: running / alone packed {mean[0]:.3f}, spread {mean[1]:.3f}; total packed / spread "
                         f"{packed['total'] / spread['total']:.2f}")
            orders += [mean[0] <= mean[1], packed["total"] <= 1.05 * spread["total"]]
        return Found("; ".join(words), orders)

