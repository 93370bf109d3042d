//! A report as one HTML page that needs nothing else.
//!
//! *Problem.* A page that is sent around, kept with the results and opened in ten years must not
//! fetch anything: no script, no font, no picture. It has to work for people with a keyboard, a
//! screen reader, a phone or a printer, and without scripts.
//!
//! *Idea.* All pictures but one kind are SVG in the page. The snapshots are long, so they are data
//! (`timeline`) that a script draws on a canvas. Paper and browsers without scripts get a still
//! picture. Each picture has a sentence that says what it shows, and a table of its figures. A
//! content security policy in the page itself forbids the browser to fetch anything.
//!
//! Names come from users, so everything is escaped, also in the data.

mod timeline;

use std::fmt::Write;

use cosched_results::result::{NONE, RunResult, Simulation};
use cosched_results::statistics::FEWEST_TO_COMPARE;
use serde_json::Value;

use crate::comparison::Comparison;
use crate::panels::{Panel, Plot, SnapshotPlot, Table};
use crate::report::{Report, ShownVariant};
use crate::svg::{self, escaped};
use crate::{colours, disturbance, molding, panels, processes, spent, spinning, words};

const PAGE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// The mark of a page: `cosched report` replaces only files with this mark.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"cosched report\">";

pub(crate) fn page(report: &Report) -> String {
    let shown = report.shown();
    let mut data = Vec::new();
    let sections: String =
        shown.iter().enumerate().map(|(i, shown)| section(i, shown, &mut data)).collect();
    let title = escaped(&report.title);
    let verdict = report.comparison.as_ref().and_then(Comparison::verdict);
    let verdict = verdict.map_or(String::new(), |verdict| summed_up(&verdict));
    let comparison = report.comparison.as_ref().map(compared).unwrap_or_default();
    let notes: String = report.notes.iter().map(|note| paragraph(note)).collect();
    // `<` would end the script early; in JSON it may be written otherwise.
    let data = Value::from(data).to_string().replace('<', "\\u003c");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{GENERATOR}\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n\
         <svg width=\"0\" height=\"0\" aria-hidden=\"true\" style=\"position:absolute\">{}</svg>\n\
         <header>\n<button id=\"theme\" type=\"button\">Light or dark</button>\n\
         <h1>{title}</h1>\n{verdict}{notes}{}</header>\n\
         <main id=\"main\">\n{comparison}{sections}</main>\n\
         <div id=\"tip\" hidden></div>\n\
         <script type=\"application/json\" id=\"runs\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        style(),
        svg::hatches(),
        contents(report.comparison.is_some(), &shown),
    )
}

fn style() -> String {
    let (day, night) = (colours::properties(&colours::DAY), colours::properties(&colours::NIGHT));
    format!(
        ":root{{{day}}}\n\
         @media(prefers-color-scheme:dark){{\
         :root:not([data-theme=light]){{color-scheme:dark;{night}}}}}\n\
         :root[data-theme=dark]{{color-scheme:dark;{night}}}\n\
         {PAGE}{}\
         @media print{{:root:root:root{{color-scheme:light;{day}}}}}\n",
        colours::PLOTS
    )
}

/// Links to the sections.
fn contents(compared: bool, shown: &[ShownVariant<'_>]) -> String {
    let comparison = compared.then(|| "<li><a href=\"#comparison\">Comparison</a></li>".to_owned());
    let variants = shown.iter().enumerate().map(|(i, shown)| {
        format!("<li><a href=\"#variant-{i}\">{}</a></li>", escaped(&shown.variant.name))
    });
    let links: Vec<String> = comparison.into_iter().chain(variants).collect();
    match links.len() {
        0 | 1 => String::new(),
        _ => format!("<nav aria-label=\"Contents\"><ul>{}</ul></nav>\n", links.concat()),
    }
}

fn compared(comparison: &Comparison) -> String {
    let machine = &comparison.machine;
    let cpus = words::count(machine.cpus, "CPU", "CPUs");
    let model = machine.model.as_deref().unwrap_or("CPU model not known");
    let rounds = match comparison.rounds {
        1 => "One run each: any difference may be chance.".to_owned(),
        n if n < FEWEST_TO_COMPARE => format!(
            "Medians of {n} rounds. With fewer than {FEWEST_TO_COMPARE} rounds there is no verdict."
        ),
        n => format!(
            "Medians of {n} rounds, with 95 % intervals. Ratios are from the pairs within each \
             round, with 98 % \
             intervals."
        ),
    };
    let rounds = match comparison.interrupted {
        true => format!("The comparison was ended before its last round. {rounds}"),
        false => rounds,
    };
    let options = comparison
        .variants
        .iter()
        .filter_map(|variant| Some(format!("{}: {}.", variant.name, variant.options.as_ref()?)));
    let sentences = options.chain(comparison.sentences());
    let sentences: String = sentences.map(|sentence| paragraph(&sentence)).collect();
    let troubles =
        comparison.variants.iter().filter(|variant| variant.failed + variant.deviations > 0).map(
            |variant| {
                paragraph(&format!(
                    "{}: {} failed, and there were {} from the plan.",
                    variant.name,
                    words::count(variant.failed, "program", "programs"),
                    words::count(variant.deviations, "deviation", "deviations"),
                ))
            },
        );
    let plots: String = panels::compared(comparison)
        .iter()
        .map(|panel| figure("comparison", panel, None))
        .collect();
    format!(
        "<section id=\"comparison\"><h2>Comparison</h2>\n\
         {sentences}<div class=\"plots\">{plots}</div>\n\
         {}{}{}</section>\n",
        paragraph(&match comparison.simulated {
            true => format!("Simulated: {model}, {cpus}. No program was run."),
            false => format!("{model}, {cpus}, {}.", machine.kernel),
        }),
        paragraph(&rounds),
        troubles.collect::<String>()
    )
}

fn section(i: usize, shown: &ShownVariant<'_>, data: &mut Vec<Value>) -> String {
    let disturbed = disturbance::sentence(shown.run).map(|sentence| format!(" {sentence}"));
    let verdict = summed_up(&(spent::verdict(shown.run) + &disturbed.unwrap_or_default()));
    let figures: String = shown
        .panels
        .iter()
        .map(|panel| {
            let drawn = match &panel.plot {
                Plot::Snapshot(snapshot) => {
                    data.push(timeline::encode(snapshot));
                    Some(data.len() - 1)
                }
                _ => None,
            };
            figure(&shown.slug, panel, drawn)
        })
        .collect();
    let rounds = match shown.variant.runs.len() {
        1 => String::new(),
        n => paragraph(&format!("This is the round with the median total time of {n} rounds.")),
    };
    let caution = shown.run.interrupted_by.iter().map(|signal| {
        paragraph(&format!(
            "This run was interrupted ({signal}) after {:.3} s, so it does not show how long the \
             programs take.",
            shown.run.total_seconds
        ))
    });
    let lacks = words::kept_from(shown.run).map(|lacks| paragraph(&lacks));
    let caution: String = caution.chain(lacks).collect();
    format!(
        "<section id=\"variant-{i}\"><h2>{}</h2>\n\
         {verdict}{caution}{rounds}<div class=\"plots\">{figures}</div>\n\
         {}</section>\n",
        escaped(&shown.variant.name),
        facts(shown.run)
    )
}

fn facts(run: &RunResult) -> String {
    let by = |what: &str, how: &str| match how.split_once(", ") {
        None if how == NONE => format!("not {what}"),
        Some((NONE, more)) => format!("not {what}, {more}"),
        _ => format!("{what} by {how}"),
    };
    let ended = run.programs.iter().filter(|program| program.exit_status == Some(0)).count();
    let mut facts = vec![
        ("policy", run.policy_in_words()),
        ("total", format!("{:.3} s", run.total_seconds)),
        ("programs", format!("{} ({ended} succeeded)", run.programs.len())),
        ("machine", run.machine.to_string()),
        ("pausing", by("paused", &run.backends.freezing)),
        ("CPUs", by("bound to CPUs", &run.backends.pinning)),
        ("deviations from the plan", run.deviations.len().to_string()),
        ("cosched itself", format!("{:.2} % of a CPU", run.own.cpu_percent)),
    ];
    // A simulation has no date.
    let dated = Some(run.started_at.clone()).filter(|_| !run.machine.is_simulated());
    facts.extend(dated.map(|date| ("began", date)));
    if let Some(simulation) = &run.simulation {
        let Simulation { machine, kernel, seed, .. } = simulation;
        facts.extend([
            ("simulated machine", machine.clone()),
            ("simulated kernel", kernel.clone()),
            ("seed", seed.to_string()),
        ]);
        facts.extend(simulation.constants().map(|set| ("constants set", set)));
    }
    facts.extend(run.quantum_seconds.map(|quantum| ("quantum", format!("{quantum} s"))));
    facts.extend(run.placement.clone().map(|placement| ("placement", placement)));
    facts.extend(molding::named(run).map(|named| ("started with fewer threads", named)));
    facts.extend(processes::named(run).map(|named| ("processes that computed", named)));
    facts.extend(spinning::named(run).map(|named| ("CPU time in spin loops", named)));
    facts.extend(run.interrupted_by.clone().map(|signal| ("interrupted by", signal)));
    let facts: String = facts
        .iter()
        .map(|(what, value)| format!("<div><dt>{what}</dt><dd>{}</dd></div>", escaped(value)))
        .collect();
    format!("<dl class=\"facts\">{facts}</dl>\n")
}

/// A picture with its title, its sentence and its table. `drawn` is the number of the data that the
/// script draws.
fn figure(slug: &str, panel: &Panel, drawn: Option<usize>) -> String {
    let id = format!("{slug}-{}", panel.id);
    let (class, picture) = match (&panel.plot, drawn) {
        (Plot::Snapshot(snapshot), Some(n)) => ("wide", snapshot_picture(snapshot, panel, n)),
        _ => {
            let (broad, slim) = (svg::inline(panel), svg::slim(panel));
            let both =
                format!("<div class=\"broad\">{broad}</div><div class=\"slim\">{slim}</div>");
            ("", both)
        }
    };
    format!(
        "<figure id=\"{id}\" class=\"{class}\"><h3>{}</h3>{picture}<figcaption>{}<details>\
         <summary>As a table</summary>{}</details></figcaption></figure>\n",
        escaped(&panel.title),
        paragraph(&panel.says),
        table(&panel.table(), &panel.title)
    )
}

/// Buttons, each with the key that does the same.
const TOOLS: [(&str, &str, &str); 7] = [
    ("Home", "|◀", "To the beginning"),
    ("PageUp", "◀", "Earlier"),
    ("-", "−", "More time"),
    ("+", "+", "Less time"),
    ("PageDown", "▶", "Later"),
    ("End", "▶|", "To the end"),
    ("0", "All", "The whole run"),
];

fn snapshot_picture(snapshot: &SnapshotPlot, panel: &Panel, n: usize) -> String {
    let buttons = TOOLS.iter().fold(String::new(), |mut text, (key, sign, what)| {
        write!(
            text,
            "<button type=\"button\" data-key=\"{key}\" title=\"{what} (key {key})\" \
             aria-label=\"{what}\">{sign}</button>"
        )
        .expect("a string takes any text");
        text
    });
    let (from, to) = snapshot.window;
    format!(
        "<div class=\"snapshot\" data-run=\"{n}\">\
         <ul class=\"keys live\">{}</ul><div class=\"live\">\
         <canvas tabindex=\"0\" role=\"application\" \
         aria-label=\"{}: arrow keys move from turn to turn and say which program runs, + and - \
         zoom, 0 shows all, Home, End and page keys move the picture\"></canvas>\
         <div class=\"tools\">{buttons}\
         <span class=\"soft-text\">Drag to move; arrow keys go from turn to turn.</span>\
         </div><p class=\"where\" aria-live=\"polite\"></p></div>\
         <div class=\"still\">{}<p>From {from:.2} s to {to:.2} s of {:.2} s.</p></div></div>",
        svg::keys(snapshot),
        escaped(&panel.title),
        svg::inline(panel),
        snapshot.total
    )
}

fn table(table: &Table, caption: &str) -> String {
    let head = |(i, text): (usize, &String)| {
        let class = if i > 0 { " class=\"number\"" } else { "" };
        format!("<th scope=\"col\"{class}>{}</th>", escaped(text))
    };
    let head: String = table.head.iter().enumerate().map(head).collect();
    let cell = |(i, text): (usize, &String)| match i {
        0 => format!("<th scope=\"row\">{}</th>", escaped(text)),
        _ => format!("<td class=\"number\">{}</td>", escaped(text)),
    };
    let row = |row: &Vec<String>| {
        format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = table.rows.iter().map(row).collect();
    // With the focus, a keyboard can scroll the table.
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>\
         <thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        escaped(caption)
    )
}

fn summed_up(verdict: &str) -> String {
    format!("<p class=\"verdict\">{}</p>\n", escaped(verdict))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

#[cfg(test)]
mod tests;
