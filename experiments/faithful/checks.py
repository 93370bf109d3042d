"""The claims as checks of a point's results."""

import statistics

from common.checks import Found, each, percent
from programs import PROGRAMS
from results import Results, LOADS, MICRO, SLICES, TRAINING, WATCHED, factor, involuntary, queue, rate, by_siblings, switches

TITLE = "paper on faithful scheduling"


def curve(fig, name, policy="TS"):
    """The runs of a program by threads."""
    return {key[2]: fig.of(*key) for key in fig.runs if key[0] == "curve" and key[1] == name and key[3] == policy}


def spread(fig, name, load, policy):
    """The largest run queue, of those seen once a second, over their mean."""
    found = queue(fig.of("load", name, load, policy))
    return max(found) / max(0.1, statistics.mean(found)) if found else 1.0


def spikes(x):
    """A spread in words."""
    return f"{x:.2f}" if x else "no thread queues"


def bands(fig, load):
    gains = fig.gains(load).values()
    return [sum(g > 0.10 for g in gains), sum(0.04 <= g <= 0.10 for g in gains), sum(0 < g < 0.04 for g in gains),
            sum(g <= 0 for g in gains)]


def gained(fig, load, theirs, most):
    found, gains = bands(fig, load), fig.gains(load)
    top = max(gains, key=gains.get)
    words = (f"over 10 %: {found[0]}; 4 to 10 %: {found[1]}; less: {found[2]}; none: {found[3]}; most "
             f"{percent(gains[top])} ({top})")
    sizes = [(ours, expected) for ours, expected in zip(found, theirs) if expected]
    return Found(words, [found[3] <= (1 if load == 100 else 0)], [*sizes, (gains[top], most)])


def together(fig, pairs):
    words, orders = [], []
    for pair in pairs:
        ts, ff = (fig.runs["two", pair, policy]["programs"] for policy in ("TS", "FF"))
        gains = {name: ts[name]["seconds"] / ff[name]["seconds"] - 1 for name in ts}
        words.append(f"{pair[0]} + {pair[1]}: {each(gains)}")
        orders += [gain > 0.10 for gain in gains.values()]
    return Found("; ".join(words), orders)


class Claims(Results):
    """A point's figures, and a check for each claim."""

    def claim_01(self):
        runs = curve(self, "applu")
        best = min(runs, key=lambda count: runs[count]["seconds"])
        rising = [switches(runs[count]) for count in (12, 18, 24, 36)]
        words = (f"fastest with {best} threads ({runs[best]['seconds']:.1f} s; 24: {runs[24]['seconds']:.1f}, "
                 f"36: {runs[36]['seconds']:.1f}); switches per second with 12, 18, 24, 36: "
                 + ", ".join(f"{x:.0f}" for x in rising))
        return Found(words, [best < 24, runs[36]["seconds"] > runs[18]["seconds"], sorted(rising) == rising], [(best, 18)])

    def claim_02(self):
        share = self.of("curve", "applu", 18, "TS")["lock_share"]
        return Found(f"18 threads: {percent(share)}", [], [(share, 0.47)])

    def claim_03(self):
        run = self.of("load", "applu", 100, "TS")
        share = (run["by_sibling"] + run["by_other"]) / max(1, involuntary(run))
        return Found(f"{percent(share)} of {involuntary(run)}", [share > 0.5], [(share, 0.56)])

    def claim_04(self):
        run = self.of("load", "applu", 100, "TS")
        share = by_siblings(run)
        return Found(f"{percent(share)}; no other program is modelled that could preempt", [], [(share, 0.55)])

    def claim_05(self):
        runs = curve(self, "applu")
        counts = (12, 24, 36)
        changed = [rate(runs[n], "priority_expired", "priority_slept", "priority_ran", "priority_waited") for n in counts]
        preempted = rate(runs[36], "priority_preempted") / max(1e-9, changed[-1])
        words = (", ".join(f"{n} threads {x:.0f}/s" for n, x in zip(counts, changed))
                 + f"; of those that had been preempted: {percent(preempted)}")
        return Found(words, [changed == sorted(changed) and changed[-1] > changed[0], preempted > 0.5])

    def claim_06(self):
        runs = curve(self, "applu")
        rates = {n: rate(runs[n], "by_sibling", "by_other") for n in (12, 18, 24, 36)}
        words = "by higher priority per second: " + each(rates, lambda x: f"{x:.0f}")
        siblings = runs[36]["by_sibling"] >= 0.95 * (runs[36]["by_sibling"] + runs[36]["by_other"])
        return Found(words, [rates[36] > 2 * rates[24], siblings])

    def claim_07(self):
        shares = {name: self.of("load", name, 200, "TS")["holder_queued"] / max(1, self.of("load", name, 200, "TS")["voluntary"])
                  for name in WATCHED}
        return Found("voluntary switches at 200 % for a lock with a holder off its CPU: " + each(shares),
                     [shares["applu"] > 0.5, shares["fluidanimate"] > 0.5])

    def claim_08(self):
        runs = curve(self, "swaptions")
        shares = {n: by_siblings(runs[n]) for n in (12, 18, 36)}
        rates = {n: rate(runs[n], "by_sibling") for n in shares}
        return Found("swaptions, by threads: " + each(shares), [shares[12] < 0.02 and shares[18] < 0.02, shares[36] < 0.2,
                     rates[36] >= rates[12]])

    def claim_09(self):
        shares = {name: by_siblings(self.of("load", name, 100, "TS")) for name in ("fluidanimate", "applu")}
        low = by_siblings(self.of("curve", "applu", 12, "TS"))
        return Found(f"24 threads: {each(shares)}; applu with 12: {percent(low)}",
                     [shares["fluidanimate"] > 0.2, shares["applu"] > 0.2, low > 0.2])

    def claim_10(self):
        rates = {name: [rate(curve(self, name)[n], "by_sibling") for n in (18, 36)] for name in WATCHED}
        words = "; ".join(f"{name} {low:.1f}/s with 18 threads, {high:.1f} with 36" for name, (low, high) in rates.items())
        grow = [high > 2 * low and high > 1 for low, high in rates.values()]
        hot = rates["applu"][0] > 2 * max(rates["swaptions"][0], rates["fluidanimate"][0])
        return Found(words, [*grow, hot])

    def claim_11(self):
        factors = {name: factor(self.of("load", name, 200, "TS")) for name in TRAINING}
        words, best = [], {}
        for name in sorted(TRAINING, key=factors.get):
            times = {ms: self.of("slice", name, ms, "FF")["seconds"] for ms in SLICES}
            best[name] = min(times, key=times.get)
            words.append(f"{name} {factors[name]:.2f}: {best[name]} ms, {percent(max(times.values()) / min(times.values()) - 1)}")
        found = list(best.values())
        half = len(found) // 2
        low, high = statistics.geometric_mean(found[:half]), statistics.geometric_mean(found[half:])
        return Found("scaling factor at 200 %, best slice, and how much longer the worst takes: " + "; ".join(words),
                     [all(a >= b for a, b in zip(found, found[1:])), low > high])

    def claim_14(self):
        slices = self.runs["load", "ammp", 100, "FF"]["slices"]
        words = "; ".join(f"at {s['at']:.0f} s lock {percent(s['lock'])}, misses {percent(s['miss'])}: {s['ms']:.0f} ms"
                          for s in slices)
        first, last = slices[0], slices[-1]
        orders = [first["lock"] > first["miss"], first["ms"] == 200, last["ms"] == 20 and len(slices) > 1]
        return Found(words, orders, [(first["lock"], 0.84), (last["lock"], 0.12)])

    def claim_15(self):
        gains = {f"{load} %": self.gain("ammp", load) for load in (100, 150, 200)}
        best = max(gains.values())
        return Found(each(gains), [best > 0.02], [(best, 0.15)])

    def claim_16(self):
        words, orders = [], []
        for load in (100, 150):
            ts, ff = (self.of("load", "ammp", load, policy) for policy in ("TS", "FF"))
            settled = [s for s in ff["steps"] if s["from_seconds"] >= 4]
            ends = [s["expired"] + s["by_sibling"] + s["by_other"] for s in settled]
            first, last = ends[0], statistics.mean(ends[-4:-1] or ends)
            words.append(f"{load} %: {rate(ts, 'expired', 'by_sibling', 'by_other'):.0f}/s under TS, "
                         f"{statistics.mean(ends):.0f} under FF, first {first}, at the end {last:.0f}")
            orders += [2 * statistics.mean(ends) < rate(ts, "expired", "by_sibling", "by_other")]
            if load == 150:
                orders += [last > first, rate(ff, "expired") < rate(ts, "expired")]
        return Found("; ".join(words), orders)

    def claim_17(self):
        times = {key[1]: self.of(*key)["seconds"] for key in self.runs if key[0] == "ferret"}
        speedup = {n: times[6] / t for n, t in times.items()}
        # One Rank thread with 6, and n - 5 with n.
        linear = [n for n in speedup if speedup[n] >= 0.8 * (n - 5)]
        words = "against 6 threads: " + each(speedup, lambda x: f"{x:.1f}")
        return Found(words, [24 in linear, 63 in linear])

    def claim_18(self):
        gains = {name: self.gain(name, 200) for name in ("bodytrack", "x264", "ferret")}
        return Found("at 200 %: " + each(gains), [gain > 0.005 for gain in gains.values()])

    def claim_19(self):
        second = self.of("load", "ammp", 100, "FF")["seconds"]
        others = {key[1]: self.of(*key)["seconds"] for key in self.runs if key[0] == "interval"}
        words = f"ammp, 24 threads: 1 s {second:.2f} s; " + each(others, lambda x: f"{x:.2f} s")
        return Found(words, [second <= 1.02 * min(others.values())])

    def claim_21(self):
        delays = sorted({key[2] for key in self.runs if key[0] == "micro"})
        words, orders = [], []
        for count in MICRO:
            for policy in ("TS", "FF"):
                found = [self.throughput(count, delay, policy) for delay in delays]
                # A lock that is used all the time is used no less when threads come less often.
                orders.append(all(b > 0.98 * a for a, b in zip(found, found[1:])))
                words.append(f"{count} {policy} " + ", ".join(f"{x:.2f}" for x in found))
        delays = ", ".join(f"{delay / 1000:g}" for delay in delays)
        return Found(f"rounds per µs with delays of {delays} µs: " + "; ".join(words), orders)

    def claim_22(self):
        delays = sorted({key[2] for key in self.runs if key[0] == "micro"})
        ahead = {(n, d): self.throughput(n, d, "FF") / self.throughput(n, d, "TS") for n in MICRO for d in delays}
        words = "; ".join(f"{n} threads " + ", ".join(f"{percent(ahead[n, d] - 1)}" for d in delays) for n in MICRO)
        rival = {f"{n} threads": statistics.geometric_mean(
            self.throughput(n, d, "LC") / self.throughput(n, d, "TS") for d in delays) - 1 for n in MICRO}
        words += "; load control against TS, means: " + each(rival)
        mean = lambda n: statistics.mean(ahead[n, d] for d in delays)
        return Found("FF against TS: " + words,
                     [all(x > 1.02 for (n, _), x in ahead.items() if n > 24), 1 < mean(23) < min(mean(36), mean(48))])

    def claim_23(self):
        found = {policy: spread(self, "swaptions", 200, policy) for policy in ("TS", "FF")}
        return Found("largest over mean at 200 %: " + each(found, spikes), [x < 1.25 for x in found.values()])

    def claim_24(self):
        words, orders = [], []
        for name in ("fluidanimate", "applu"):
            ts, ff = (spread(self, name, 200, policy) for policy in ("TS", "FF"))
            words.append(f"{name} TS {spikes(ts)}, FF {spikes(ff)}")
            orders += [ts > 1.5, ff < 1.25]
        return Found("largest over mean at 200 %: " + "; ".join(words), orders)

    def claim_25(self):
        wait = lambda run: run["run_delay_seconds"] / run["turns"] * 1e3
        found = {name: [wait(self.of("load", name, 200, policy)) for policy in ("TS", "FF")] for name in WATCHED}
        words = "; ".join(f"{name} TS {ts:.2f} ms, FF {ff:.2f}" for name, (ts, ff) in found.items())
        return Found("mean wait for a CPU at 200 %: " + words, [ts > ff for ts, ff in found.values()])

    def claim_26(self):
        return gained(self, 100, [5, 6, 9, 1], 0.35)

    def claim_27(self):
        return gained(self, 200, [8, 6, 7, 0], 1.07)

    def claim_28(self):
        gains = {name: gain for name, gain in self.gains(50).items() if gain > 0.02}
        return Found("more than 2 % at 50 %: " + (each(gains) or "none"), [len(gains) >= 3])

    def claim_29(self):
        found = {load: self.classes(load) for load in LOADS}
        words = "; ".join(f"{load} %: {each(gains)}" for load, gains in found.items())
        return Found(words, [g["high"] > g["medium"] > g["low"] for g in found.values()])

    def claim_30(self):
        found = {f"{name} at {load} %": self.gain(name, load) for name in ("SPECjbb2005", "facesim") for load in (100, 200)}
        return Found(each(found), [gain > 0.02 for gain in found.values()])

    def claim_31(self):
        speed = [1 / self.of("load", "TATP", load, "FF")["seconds"] for load in LOADS]
        gains = {f"{load} %": self.gain("TATP", load) for load in LOADS}
        words = f"gains {each(gains)}; throughput of FF against 50 % load: " + ", ".join(percent(s / speed[0]) for s in speed)
        rival = {f"{load} %": self.gain("TATP", load, "LC") for load in LOADS}
        words += f"; gains by load control: {each(rival)}"
        return Found(words, [max(gains.values()) > 0.02, all(b > 0.75 * a for a, b in zip(speed, speed[1:]))])

    def claim_32(self):
        preemptions, fewer, less = 0, [], []
        for name in PROGRAMS:
            for load in (100, 200):
                ts, ff = (self.of("load", name, load, policy) for policy in ("TS", "FF"))
                # Once the class is fixed; before that it runs under TS, too.
                preemptions += sum(s["by_sibling"] for s in ff["steps"] if s["from_seconds"] >= 4)
                fewer.append(involuntary(ff) / ff["seconds"] / max(1e-9, involuntary(ts) / ts["seconds"]))
                less.append(switches(ff) / max(1e-9, switches(ts)))
        words = (f"sibling preemptions after 4 s: {preemptions}; involuntary switches "
                 f"under FF against TS, median {percent(statistics.median(fewer))}, "
                 f"both kinds {percent(statistics.median(less))}")
        return Found(words, [preemptions == 0, statistics.median(fewer) < 0.5, statistics.median(less) < 0.5])

    def claim_33(self):
        return together(self, [(24, 12), (24, 24), (24, 36)])

    def claim_34(self):
        return together(self, [(12, 12), (18, 18), (24, 24)])

    def claim_35(self):
        found, times = [], []
        for name in ("applu", "fluidanimate"):
            ts, ff = (rate(self.of("load", name, 200, policy), "holders") for policy in ("TS", "FF"))
            found.append((name, ts, ff))
        for count in (24, 48):
            ts, ff = (self.of("nested", count, policy)["seconds"] for policy in ("TS", "FF"))
            times.append(ts / ff - 1)
        words = "; ".join(f"{name} TS {ts:.2f}/s, FF {ff:.2f}" for name, ts, ff in found)
        words += f"; nested locks gain {percent(times[0])} with 24 threads, {percent(times[1])} with 48"
        return Found("holders that lost their CPUs at 200 %: " + words,
                     [*(ff < 0.2 * ts for _, ts, ff in found), min(times) > -0.01])

    def claim_36(self):
        words, orders = [], []
        for name in WATCHED:
            ts, ff = ([self.of(*key)["seconds"] for key in self.runs if key[0] == "seed" and key[1] == name and key[3] == policy]
                      for policy in ("TS", "FF"))
            cv = lambda x: statistics.stdev(x) / statistics.mean(x)
            words.append(f"{name} TS {100 * cv(ts):.2f} %, FF {100 * cv(ff):.2f}")
            orders.append(cv(ff) < cv(ts))
        return Found("deviation over five seeds at 150 %: " + "; ".join(words), orders)

