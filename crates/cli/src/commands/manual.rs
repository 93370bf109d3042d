//! `cosched manual`: man pages and shell completions, made from the definitions of the command
//! line.
//!
//! They go into one folder that is laid out like `/usr/share`, so that a package takes it as it is,
//! and users put it into `~/.local/share`: shells and `man` look at the same places below both.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use cosched_results::whole_file;
use cosched_workload::shown_path;

use crate::commands::Cli;
use crate::ui::failure::{EXIT_CODES, Failure};

const NAME: &str = "cosched";
/// The title of the collection, in the middle of the head line of each man page.
const COLLECTION: &str = "User Commands";

/// Where each shell looks for a completion, below `/usr/share`. Zsh looks at its second place only
/// on Debian and its like; elsewhere the folder has to be put into `fpath`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/cosched"),
    (Shell::Fish, "fish/vendor_completions.d/cosched.fish"),
    (Shell::Zsh, "zsh/vendor-completions/_cosched"),
];

#[derive(Debug, Args)]
pub(crate) struct ManualArgs {
    /// The folder, such as ~/.local/share; made if it does not exist. Files of an earlier version
    /// are replaced.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes all of them.
pub(crate) fn manual(args: &ManualArgs) -> Result<ExitCode, Failure> {
    let remedy = "name a folder that you may write to, such as ~/.local/share";
    write(&args.folder).map_err(|error| Failure::unwritable(&args.folder, &error, remedy))?;
    Ok(ExitCode::SUCCESS)
}

fn write(share: &Path) -> io::Result<()> {
    let pages = share.join("man/man1");
    fs::create_dir_all(share)?;
    make_below(share, Path::new("man/man1"))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    // The generators of completions do not know what is hidden.
    let mut complete = Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommands(shown(&command).cloned());
    command.build();
    write_pages(&command, &pages)?;
    for (shell, file) in COMPLETIONS {
        Path::new(file).parent().map_or(Ok(()), |folder| make_below(share, folder))?;
        let file = share.join(file);
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut complete, NAME, &mut script);
        whole_file::write(&file, &script)?;
    }
    Ok(())
}

/// Makes folders below one, and follows no link there: others may be able to write to it.
fn make_below(share: &Path, folders: &Path) -> io::Result<()> {
    let mut path = share.to_owned();
    for folder in folders {
        path.push(folder);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                let what = format!(
                    "{} is a symbolic link, which cosched does not follow",
                    shown_path(&path)
                );
                return Err(io::Error::other(what));
            }
            Ok(_) => {}
            Err(_) => fs::create_dir(&path)?,
        }
    }
    Ok(())
}

/// A page for a command and one for each of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    let source = concat!("cosched ", env!("CARGO_PKG_VERSION"));
    // The generator leaves out the text of an option that `-h` does not show.
    let shown_whole = command.clone().mut_args(|option| option.hide_short_help(false));
    let man = Man::new(shown_whole).manual(COLLECTION).source(source);
    whole_file::write(&folder.join(man.get_filename()), &page(&man, command)?)?;
    shown(command).try_for_each(|subcommand| write_pages(subcommand, folder))
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set())
}

/// What `--help` says, in the sections that man pages have, and what it leaves out.
fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend(synopsis(command).to_roff().into_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if shown(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    for (title, lines) in appendix(command) {
        rest.control("SH", [title.to_uppercase().as_str()]).control("nf", []);
        lines.iter().for_each(|line| {
            rest.text([roman(line)]);
        });
        rest.control("fi", []);
    }
    rest.control("SH", ["EXIT STATUS"]);
    let (before, codes) = exit_status(command);
    before.iter().for_each(|before| {
        rest.text([roman(*before)]);
    });
    for (code, meaning) in codes {
        rest.control("TP", []).text([bold(code.to_string())]).text([roman(*meaning)]);
    }
    rest.control("SH", ["SEE ALSO"]);
    rest.text([roman(
        "The formats of jobs files and results, the policies and the promises: in the folder docs \
         of the sources, \
         and in /usr/share/doc/cosched/docs where a package was installed.",
    )]);
    page.extend(rest.to_roff().into_bytes());
    Ok(page)
}

/// The exit codes of a command, and what is said before them: a command that ends as its program
/// does has few of its own.
fn exit_status(command: &Command) -> (Option<&'static str>, &'static [(u8, &'static str)]) {
    let own = &[
        (0, "the program succeeded"),
        (1, "the program succeeded, but its settings could not be restored"),
        (2, "bad input: nothing was started"),
    ];
    match command.get_name() {
        "exec" => (
            Some(
                "Every code but 0 is the program's own, and 128 + n if signal n ended it. cosched \
                 itself has these codes:",
            ),
            own,
        ),
        "stat" => (
            Some(
                "With a command after --, every code but 0 is the program's own, and 128 + n if \
                 signal n ended it. cosched itself has these codes:",
            ),
            &EXIT_CODES,
        ),
        _ => (None, &EXIT_CODES),
    }
}

/// How a command is called, a line for each way, as `--help` says it: clap knows what has to stand
/// where, and the generator of pages does not.
fn usages(command: &Command) -> Vec<String> {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage:").lines();
    lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn synopsis(command: &Command) -> Roff {
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    let name = command.get_bin_name().unwrap_or(NAME);
    for (i, usage) in usages(command).iter().enumerate() {
        if i > 0 {
            synopsis.control("br", []);
        }
        let rest = usage.strip_prefix(name).unwrap_or_default();
        synopsis.text([bold(name), roman(rest)]);
    }
    synopsis
}

/// What `--help` of a subcommand says after the options: sections of lines, each below a title with
/// a colon.
fn appendix(command: &Command) -> Vec<(String, Vec<String>)> {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    // The exit codes, which stand there for the command itself, have a section on every page.
    let after = command.get_after_help().filter(|_| command.get_name() != NAME);
    for line in after.map(ToString::to_string).unwrap_or_default().lines() {
        match (line.strip_suffix(':'), sections.last_mut()) {
            (Some(title), _) if !line.starts_with(' ') => sections.push((title.to_owned(), vec![])),
            (_, Some((_, lines))) => lines.push(line.to_owned()),
            (_, None) => {}
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use cosched_workload::Workload;

    use super::*;

    /// The text of a page, without what only a formatter reads.
    fn plain(page: &str) -> String {
        page.replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "")
    }

    fn built() -> Command {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        command
    }

    /// All pages and completions.
    fn manual() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        folder
    }

    /// Every command that users see, by its words.
    fn every(command: Command) -> Vec<(String, Command)> {
        fn collect(command: &Command, name: &str, into: &mut Vec<(String, Command)>) {
            into.push((name.to_owned(), command.clone()));
            for subcommand in shown(command) {
                collect(subcommand, &format!("{name} {}", subcommand.get_name()), into);
            }
        }
        let mut commands = Vec::new();
        collect(&command, NAME, &mut commands);
        commands
    }

    #[test]
    fn each_synopsis_is_the_usage_of_help() {
        let folder = manual();
        for (name, mut command) in every(built()) {
            let page = folder.path().join(format!("man/man1/{}.1", name.replace(' ', "-")));
            let page = plain(&fs::read_to_string(page).unwrap());
            let from = page.find(".SH SYNOPSIS\n").unwrap() + ".SH SYNOPSIS\n".len();
            let until = page[from..].find(".SH DESCRIPTION").unwrap();
            let synopsis: Vec<&str> =
                page[from..from + until].lines().filter(|line| !line.starts_with('.')).collect();
            let help = command.render_help().to_string();
            let usage = help.split_once("Usage: ").unwrap().1.split("\n\n").next().unwrap();
            let usage: Vec<&str> = usage.lines().map(str::trim).collect();
            assert_eq!(synopsis, usage, "{name}");
            let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
            let version = format!("\"cosched {}\"", env!("CARGO_PKG_VERSION"));
            assert!(title.contains(&version), "{title}");
        }
    }

    #[test]
    fn the_page_of_top_lists_its_keys_and_columns() {
        let folder = manual();
        let page = fs::read_to_string(folder.path().join("man/man1/cosched-top.1")).unwrap();
        let page = plain(&page);
        assert!(page.contains(".SH KEYS\n") && page.contains(".SH COLUMNS\n"), "{page}");
        for (column, meaning) in cosched_report::screen::legend() {
            assert!(page.contains(column) && page.contains(meaning), "{column}: {page}");
        }
    }

    #[test]
    fn every_visible_command_has_a_page() {
        let folder = manual();
        let names = every(Cli::command()).into_iter().map(|(name, _)| name.replace(' ', "-"));
        let names: Vec<String> = names.collect();
        assert!(names.contains(&"cosched-sim-measure".to_owned()), "{names:?}");
        let pages = folder.path().join("man/man1");
        for name in &names {
            let page = fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
            let page = page.replace("\\-", "-");
            assert!(page.contains(&format!("\n{name} - ")), "{page}");
            let codes = EXIT_CODES.iter().filter(|(code, _)| name != "cosched-exec" || *code == 2);
            for (code, meaning) in codes {
                assert!(page.contains(&format!("\\fB{code}\\fR\n{meaning}")), "{page}");
            }
        }
        assert_eq!(fs::read_dir(pages).unwrap().count(), names.len());
    }

    #[test]
    fn pages_of_commands_that_end_as_a_program_say_so() {
        let folder = manual();
        for (name, begin) in [("exec", "Every code"), ("stat", "With a command after --, every")] {
            let page = folder.path().join(format!("man/man1/cosched-{name}.1"));
            let page = plain(&fs::read_to_string(page).unwrap());
            let (_, codes) = page.split_once(".SH \"EXIT STATUS\"\n").unwrap();
            assert!(codes.starts_with(begin), "{codes}");
            assert!(codes.contains("128 + n if signal n ended it"), "{codes}");
            assert_eq!(codes.contains("a program failed"), name == "stat", "{codes}");
        }
    }

    #[test]
    fn every_option_of_a_page_has_its_text() {
        let folder = manual();
        for page in fs::read_dir(folder.path().join("man/man1")).unwrap() {
            let path = page.unwrap().path();
            let page = fs::read_to_string(&path).unwrap();
            let entries = page.split("\n.TP\n").skip(1);
            let bare = entries.filter(|entry| entry.lines().nth(1).is_none_or(str::is_empty));
            assert_eq!(bare.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", path.display());
        }
    }

    #[test]
    fn each_shell_completes_policies_and_none_shows_what_is_hidden() {
        let folder = manual();
        for (shell, file) in COMPLETIONS {
            let script = fs::read_to_string(folder.path().join(file)).unwrap();
            assert!(script.contains("minwait") && script.contains("calibrate"), "{shell}");
            assert!(!script.contains(cosched_lab::gaps::SPIN), "{shell}: {script}");
        }
    }

    /// Commands that print nothing themselves: the output is a program's, or goes to files. The
    /// last one prints a file for an option.
    const WITHOUT_JSON: &[&str] = &["cosched exec", "cosched manual", "cosched calibrate quanta"];

    #[test]
    fn a_link_in_the_place_of_a_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("fish")).unwrap();
        let error = write(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("fish is a symbolic link, which cosched does not follow"),
            "{error}"
        );
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    /// The pages of docs/ are only in the sources and in some packages.
    #[test]
    fn no_help_names_a_page_of_the_sources() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            assert!(!help.contains("docs/"), "{help}");
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut Cli::command());
    }

    #[test]
    fn the_help_lists_every_key_of_a_jobs_file() {
        let mut command = Cli::command();
        let help = command.find_subcommand_mut("run").unwrap().render_long_help().to_string();
        let refused =
            Workload::parse("[[program]]\ncommand = 'a'\nquux = 1", Path::new("jobs.toml"));
        let refused = refused.unwrap_err().to_string();
        let (_, keys) = refused.split_once("the keys are ").unwrap();
        let words: Vec<&str> = help.split([' ', '\n', ',', '.', ':']).collect();
        for key in keys.split(", ") {
            assert!(words.contains(&key), "{key} is not in the help");
        }
    }

    #[test]
    fn every_result_has_documented_json() {
        let page = include_str!("../../../../docs/json.md");
        let mut commands = every(Cli::command());
        // A command that only has subcommands prints nothing itself.
        commands.retain(|(_, one)| !one.has_subcommands() || one.get_arguments().next().is_some());
        assert!(commands.len() > 8, "{commands:?}");
        for (name, command) in commands {
            let json = command.get_arguments().any(|argument| argument.get_id() == "json");
            assert!(json != WITHOUT_JSON.contains(&name.as_str()), "{name} has no --json");
            assert!(!json || page.contains(&format!("`{name}`")), "docs/json.md lacks {name}");
        }
    }
}
