//! `cosched report`, from outside: which runs belong together, and a page that works in a browser.

#![allow(clippy::unwrap_used)]

mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Eight programs: two of them share a colour with others, and are hatched.
fn workload() -> String {
    let program = |i: usize| {
        format!(
            "[[program]]\nname = 'p{i}'\ncommand = 'p{i}'\nthreads = {}\n[program.model]\n\
             [[program.model.phase]]\ninstructions = 3e9\nbarriers = 10\n",
            4 + i % 3 * 4
        )
    };
    (0..8).map(program).collect()
}

fn cosched(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

/// A folder with simulated runs, each in a folder of its own.
fn runs(places: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.toml"), workload()).unwrap();
    for (policy, out) in places {
        let machine = ["--machine", "dunnington-24", "--kernel", "cfs", "--quantum", "50ms"];
        let asked = [&["sim", "jobs.toml", "-p", policy, "--out", out][..], &machine[..]].concat();
        let asked = if *policy == "linux" { &asked[..asked.len() - 2] } else { &asked[..] };
        let output = cosched(folder.path(), asked);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    folder
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The solo time of `p0` in one variant is much longer than the program ran there.
#[test]
fn an_impossible_solo_time_is_in_no_figure_of_the_page() {
    let folder = runs(&[("gang", "d/gang"), ("linux", "d/linux")]);
    let page = || {
        let output = cosched(folder.path(), &["report", "d", "-o", "page.html"]);
        assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
        fs::read_to_string(folder.path().join("page.html")).unwrap()
    };
    let figures = ["Total time / sum of solo times", "Speed relative to a solo run"];
    let possible = page();
    assert!(figures.iter().all(|title| possible.contains(title)));
    for policy in ["gang", "linux"] {
        let file = folder.path().join("d").join(policy).join("run.json");
        let mut run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        // Simulated solo times are always possible.
        run["machine"]["kernel"] = "6.18".into();
        run["simulation"] = Value::Null;
        if policy == "gang" {
            run["programs"][0]["solo_seconds"] = 1000.0.into();
            run["programs"][0]["interference_seconds"] = (-990.0).into();
        }
        fs::write(&file, run.to_string()).unwrap();
    }
    let page = page();
    for title in figures {
        assert!(!page.contains(title), "{title}");
    }
    assert!(page.contains("is not used, because the program ran for less"));
    assert!(!page.contains("-990"));
}

#[test]
fn a_folder_of_variants_becomes_a_page_and_plots() {
    let folder = runs(&[("gang", "d/gang"), ("linux", "d/linux")]);
    let nowhere = cosched(folder.path(), &["report", "d", "-o", "new/page.html"]);
    assert_eq!(nowhere.status.code(), Some(2), "a slip of the finger makes no folder");
    assert!(!folder.path().join("new").exists());
    let output = cosched(folder.path(), &["report", "d", "-o", "page.html", "--svg", "new/plots"]);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    let (comparison, linux) =
        (page.find("id=\"comparison\"").unwrap(), page.find("<h2>linux").unwrap());
    assert!(
        comparison < linux && linux < page.find("<h2>gang").unwrap(),
        "linux is the first variant"
    );
    assert!(page.contains("One run each"));
    for plot in ["comparison-ratio", "gang-snapshot", "gang-turnaround", "linux-fairness"] {
        let plot = folder.path().join(format!("new/plots/{plot}.svg"));
        assert!(fs::read_to_string(&plot).unwrap().starts_with("<svg"), "{}", plot.display());
    }
}

#[test]
fn rounds_without_all_variants_do_not_count() {
    let folder = runs(&[("gang", "d/round-001/gang"), ("linux", "d/round-001/linux")]);
    for (round, variant) in [("002", "gang"), ("002", "linux"), ("003", "gang")] {
        let place = |round: &str| folder.path().join(format!("d/round-{round}/{variant}"));
        fs::create_dir_all(place(round)).unwrap();
        fs::copy(place("001").join("run.json"), place(round).join("run.json")).unwrap();
    }
    let output = cosched(folder.path(), &["report", "d", "-o", "-", "--against", "gang"]);
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("1 incomplete round does not count."));
    assert!(page.contains("Medians of 2 rounds."));
    assert!(page.find("<h2>gang").unwrap() < page.find("<h2>linux").unwrap());
}

#[test]
fn variants_keep_the_order_of_the_comparison() {
    let folder = runs(&[]);
    let compared =
        ["compare", "jobs.toml", "--machine", "dunnington-24", "--runs", "2", "--out", "d"];
    let asked = [&compared[..], &["--policies", "minwait,fcfs,gang"]].concat();
    assert!(cosched(folder.path(), &asked).status.success());
    let names = || {
        let output = cosched(folder.path(), &["report", "d", "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let variants = found["variants"].as_array().unwrap().iter();
        variants.map(|variant| variant["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["minwait", "fcfs", "gang"]);
    // Simulations have no date, so nothing else determines the order.
    fs::remove_file(folder.path().join("d/compare-plan.json")).unwrap();
    assert_eq!(names(), ["fcfs", "gang", "minwait"]);
    for command in [["explain", "d", "--json"], ["sim", "--from", "d"]] {
        let more = if command[0] == "sim" { &["--policy", "gang"][..] } else { &[] };
        let output = cosched(folder.path(), &[&command[..], more].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(
            messages(&output).contains("name one of them, such as d/round-001/fcfs"),
            "{}",
            messages(&output)
        );
    }
}

#[test]
fn an_earlier_report_is_replaced_and_nothing_else() {
    let folder = runs(&[("gang", "d")]);
    let report = |out: &str| cosched(folder.path(), &["report", "d", "-o", out]);
    assert_eq!(report("page.html").status.code(), Some(0));
    assert_eq!(report("page.html").status.code(), Some(0));
    let refused = report("jobs.toml");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        messages(&refused).contains("jobs.toml: exists and was not made by"),
        "{}",
        messages(&refused)
    );
    assert_eq!(fs::read_to_string(folder.path().join("jobs.toml")).unwrap(), workload());
}

#[test]
fn an_earlier_plot_is_replaced_and_no_foreign_drawing() {
    let folder = runs(&[("gang", "d")]);
    let report = || cosched(folder.path(), &["report", "d", "--svg", "plots"]);
    assert_eq!(report().status.code(), Some(0));
    assert_eq!(report().status.code(), Some(0));
    let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\"><rect/></svg>";
    let place = folder.path().join("plots/gang-snapshot.svg");
    fs::write(&place, drawing).unwrap();
    let refused = report();
    assert_eq!(refused.status.code(), Some(2));
    let expected = "gang-snapshot.svg: exists and was not made by `cosched report`; choose another \
                    place with --svg";
    assert!(messages(&refused).contains(expected), "{}", messages(&refused));
    assert_eq!(fs::read_to_string(&place).unwrap(), drawing);
    // No other plot is written then, either, and none where the page cannot be written.
    let both = |svg, page| cosched(folder.path(), &["report", "d", "--svg", svg, "-o", page]);
    for output in [both("plots", "page.html"), both("new", "jobs.toml")] {
        assert_eq!(output.status.code(), Some(2), "{}", messages(&output));
        assert!(!folder.path().join("page.html").exists() && !folder.path().join("new").exists());
    }
    fs::rename(&place, folder.path().join("plots/gang-turnaround.svg")).unwrap();
    assert_eq!(report().status.code(), Some(2));
    assert!(!place.exists(), "it comes before the one that was refused");
}

/// Changes the content of a result.
fn change(run: &Path, change: impl Fn(&mut Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(run).unwrap()).unwrap();
    change(&mut value);
    fs::write(run, value.to_string()).unwrap();
}

#[test]
fn runs_of_different_machines_are_shown_and_not_compared() {
    let folder = runs(&[("gang", "a"), ("linux", "b")]);
    change(&folder.path().join("b/run.json"), |run| run["machine"]["kernel"] = "6.18.0".into());
    let page = String::from_utf8(cosched(folder.path(), &["report", "a", "b", "-o", "-"]).stdout);
    let page = page.unwrap();
    let note = "These runs are shown, but not compared: linux is of ";
    assert!(
        page.contains(note) && page.contains(", 24 CPUs, 6.18.0, kernel cfs, and gang of "),
        "{page}"
    );
    assert!(!page.contains("id=\"comparison\""));
    assert!(page.contains("<h2>gang") && page.contains("<h2>linux"));
}

#[test]
fn interrupted_runs_are_shown_with_a_caution_and_not_compared() {
    let folder = runs(&[("gang", "d/gang"), ("linux", "d/linux")]);
    let interrupted = |run: &mut Value| run["interrupted_by"] = "SIGINT".into();
    change(&folder.path().join("d/gang/run.json"), interrupted);
    for arguments in [&["report", "d", "-o", "-"][..], &["report", "d/gang", "d/linux", "-o", "-"]]
    {
        let page = String::from_utf8(cosched(folder.path(), arguments).stdout).unwrap();
        assert!(page.contains("shown, but not compared: gang was interrupted (SIGINT)."), "{page}");
        assert!(!page.contains("id=\"comparison\""));
        let caution = "This run was interrupted (SIGINT) after ";
        assert_eq!(page.matches(caution).count(), 1, "{page}");
    }
}

#[test]
fn variants_keep_the_commands_order_and_are_named_by_folder() {
    let folder =
        runs(&[("gang", "slow/run"), ("gang", "quick"), ("greedy", "one"), ("gang", "b/run")]);
    let names = |arguments: &[&str]| -> Vec<String> {
        let output = cosched(folder.path(), &[&["report", "--json"][..], arguments].concat());
        let written: Value = serde_json::from_slice(&output.stdout).unwrap();
        let variants = written["variants"].as_array().unwrap().iter();
        variants.map(|variant| variant["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["quick", "one", "slow/run"]), ["gang (quick)", "greedy", "gang (run)"]);
    let same = names(&["slow/run", "b/run/run.json"]);
    assert_eq!(same, ["gang (slow/run)", "gang (b/run/run.json)"]);
}

#[test]
fn written_files_are_listed_as_json() {
    let folder = runs(&[("gang", "d/gang"), ("linux", "d/linux")]);
    let arguments = ["report", "d", "--json", "-o", "page.html", "--svg", "plots"];
    let output = cosched(folder.path(), &arguments);
    assert_eq!((output.status.code(), messages(&output).as_str()), (Some(0), ""));
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&written["schema"], &written["compared"]),
        (&"cosched-report/2".into(), &true.into())
    );
    let files = written["files"].as_array().unwrap();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let path = folder.path().join(file["file"].as_str().unwrap());
        assert_eq!(file["bytes"], fs::metadata(path).unwrap().len());
    }
    assert_eq!(files.iter().filter(|file| file["kind"] == "page").count(), 1);
    assert_eq!(written["variants"][0]["name"], "linux");
    assert_eq!(written["variants"][1]["runs"], serde_json::json!(["d/gang/run.json"]));
    assert_eq!(written["variants"][1]["sections"][0], "snapshot");
    let both = cosched(folder.path(), &["report", "d", "--json", "-o", "-"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(messages(&both).contains("name a file with --out"), "{}", messages(&both));
}

#[test]
fn inputs_that_cannot_be_shown_are_refused_with_a_remedy() {
    let folder = runs(&[("gang", "d/gang")]);
    fs::create_dir(folder.path().join("empty")).unwrap();
    let refused = |arguments: &[&str]| {
        let output = cosched(folder.path(), &[&["report"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        messages(&output)
    };
    assert!(refused(&["empty"]).contains("empty: holds no result of a run; name a folder"));
    assert!(refused(&["gone"]).contains("gone: cannot be read"));
    let old = r#"{"schema": "cosched-compare/1"}"#;
    fs::write(folder.path().join("old.json"), old).unwrap();
    assert!(
        refused(&["old.json"])
            .contains("old.json: is no comparison with the schema 'cosched-compare/4'")
    );
    assert!(
        refused(&["jobs.toml"])
            .contains("jobs.toml: is not a result of a run (it is no JSON object)")
    );
    assert!(refused(&["d", "--against", "fcfs"]).contains("no variant 'fcfs'; choose from gang"));
    assert!(
        refused(&["d", "--begin", "2s", "--end", "1s"]).contains("--begin: it must come before")
    );
    for begin in ["50", "50s", "50000ms"] {
        let message = refused(&["d", "--begin", begin]);
        assert!(
            message.contains("--begin 50 s: the run took ") && message.contains("within it"),
            "{message}"
        );
    }
    let shorter = folder.path().join("d/short");
    fs::create_dir(&shorter).unwrap();
    fs::copy(folder.path().join("d/gang/run.json"), shorter.join("run.json")).unwrap();
    change(&shorter.join("run.json"), |run| run["total_seconds"] = 0.01.into());
    let both = cosched(folder.path(), &["report", "d", "--begin", "0.1", "-o", "-"]);
    let page = String::from_utf8(both.stdout).unwrap();
    assert!(page.contains("short ended after 0.01 s, before --begin: all of it is shown."));
    assert!(refused(&["d", "--end", "soon"]).contains("350ms"));
    let mut huge: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("d/gang/run.json")).unwrap())
            .unwrap();
    huge["machine"]["cpus"] = 1025.into();
    fs::write(folder.path().join("huge.json"), huge.to_string()).unwrap();
    assert!(refused(&["huge.json"]).contains("huge.json: machine.cpus is 1025"));
}

/// Without `--out` the page lies where its user looks for it: beside the result.
#[test]
fn a_page_is_written_beside_its_result() {
    let folder = runs(&[("gang", "one"), ("linux", "two")]);
    for from in [&["one"][..], &["one/run.json"], &["one", "two"]] {
        let output = cosched(folder.path(), &[&["report"], from].concat());
        assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
        let page = if from.len() == 1 { "one/report.html" } else { "report.html" };
        assert!(messages(&output).contains(&format!("{page}: ")), "{}", messages(&output));
        fs::remove_file(folder.path().join(page)).unwrap();
    }
}

/// Listens for faults before the page's own script runs.
const LISTEN: &str = "<script>window.faults = [];
    addEventListener('error', event => faults.push(event.message));
    addEventListener('securitypolicyviolation', event => faults.push(event.violatedDirective));
    for (const kind of ['error', 'warn']) console[kind] = (...what) => \
        faults.push(what.join(' '));</script>";

/// Uses the page as a person would, and writes down what happened.
const PROBE: &str = "<script>{
    const canvas = document.querySelector('canvas'), where = document.querySelector('.where');
    const press = key => { \
        canvas.dispatchEvent(new KeyboardEvent('keydown', { key })); \
        return where.textContent; };
    const colours = () => {
        const { width, height } = canvas, seen = new Set();
        const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
        for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());
        return seen.size;
    };
    const paper = () => getComputedStyle(document.body).backgroundColor;
    const found = { before: where.textContent, colours: colours(), day: paper() };
    found.closer = press('+');
    found.next = press('ArrowRight');
    found.all = press('0');
    document.getElementById('theme').click();
    found.night = paper();
    found.faults = faults;
    found.canvases = document.querySelectorAll('canvas').length;
    found.named = [...document.querySelectorAll('svg[role=img]')]\
        .every(svg => svg.getAttribute('aria-label'));
    found.tables = [...document.querySelectorAll('figure')]\
        .every(figure => figure.querySelector('table'));
    found.dashed = [...document.querySelectorAll('#linux-treatment .second')].some(line =>
        line.checkVisibility() && getComputedStyle(line).strokeDasharray !== 'none');
    found.fetched = performance.getEntriesByType('resource').length;
    found.overflow = document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth;
    found.milliseconds = Number(document.documentElement.dataset.milliseconds);
    document.body.dataset.probe = JSON.stringify(found);
}</script>";

fn chromium() -> Option<PathBuf> {
    let names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.exists())
}

/// Opens the page in a window of this size, and returns what the probe found.
fn open(chromium: &Path, folder: &Path, size: &str) -> Value {
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    let page = page.replacen("<head>", &format!("<head>{LISTEN}"), 1);
    fs::write(folder.join("probed.html"), page.replacen("</body>", &format!("{PROBE}</body>"), 1))
        .unwrap();
    let output = Command::new("timeout")
        .arg("120")
        .arg(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--window-size={size}"))
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .arg(folder.join("probed.html"))
        .output()
        .unwrap();
    let said = messages(&output);
    assert!(!said.contains("CONSOLE"), "{said}");
    let dom = String::from_utf8(output.stdout).unwrap();
    let found = dom.split_once("data-probe=\"").unwrap_or_else(|| panic!("{said}\n{dom}")).1;
    let found = found.split_once('"').unwrap().0;
    serde_json::from_str(&found.replace("&quot;", "\"").replace("&amp;", "&")).unwrap()
}

#[test]
fn the_page_works_in_a_browser_with_the_keyboard() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no Chromium to open the page in; `make test-report` installs one");
        return;
    };
    let folder = runs(&[("gang", "d/gang"), ("greedy", "d/greedy"), ("linux", "d/linux")]);
    // This makes it look as if a policy had tried actuators for the threads of a program.
    change(&folder.path().join("d/linux/run.json"), |run| {
        let about = |at: f64, why: Value| {
            let mut reason = why;
            reason["program"] = serde_json::json!({ "slot": 0, "generation": 0 });
            serde_json::json!({ "at_seconds": at, "reasons": [reason] })
        };
        let slice = serde_json::json!({
            "why": "slice", "slice": 200_000_000, "lock_contention": 0.84, "miss_ratio": null,
        });
        let tried = serde_json::json!({ "why": "tried", "actuator": "batch", "against": "none" });
        let kept = serde_json::json!({ "why": "kept", "actuator": "batch", "progress": 1.2 });
        run["decisions"] = vec![about(0.1, slice), about(0.15, tried), about(0.2, kept)].into();
    });
    let output = cosched(folder.path(), &["report", "d", "-o", "page.html", "--against", "gang"]);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    for size in ["1280,900", "390,844"] {
        let found = open(&chromium, folder.path(), size);
        println!("{size}: opened in {} ms", found["milliseconds"]);
        assert_eq!(found["faults"], serde_json::json!([]));
        assert_eq!((&found["canvases"], &found["fetched"]), (&3.into(), &0.into()));
        assert_eq!((&found["named"], &found["tables"]), (&true.into(), &true.into()));
        assert!(found["colours"].as_u64() >= Some(8), "{found}");
        assert_eq!(found["dashed"], true, "lines are distinguishable without colours");
        assert_ne!(found["before"], found["closer"]);
        assert!(found["next"].as_str().unwrap().contains(" on "), "{found}");
        assert!(found["all"].as_str().unwrap().starts_with("0.00 s to "), "{found}");
        assert_ne!(found["day"], found["night"]);
        assert!(found["overflow"].as_i64() <= Some(0), "{found}");
    }
}
