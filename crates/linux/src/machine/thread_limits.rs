//! Malleable programs: their requests, and their thread limits.
//!
//! A request becomes an event. The engine has the policy decide, and the settings that come back,
//! changed or not, are the answer. A policy that sets no limits leaves the number open, and the
//! program gets its request. A frozen program's request waits until it runs; it would not notice an
//! answer before.

use cosched_core::{Aspect, Happening, Nanos, ProgramId, Refusal, Settings};
use cosched_page::BEAT;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use super::program::{ByExt, Live};
use super::{HOOK_SERVER, Linux, key};
use crate::hook::{Hook, HookServer, preloaded};
use crate::kernel::clock;

const NANOS: u64 = 1_000_000;

impl Linux {
    /// Opens a program's hook server, if it has the hook, and passes its name to the program.
    pub(super) fn open_hook_server(
        &self,
        id: ProgramId,
        hook: Option<&Hook>,
        env: &mut Vec<(OsString, OsString)>,
    ) -> io::Result<Option<HookServer>> {
        let Some(hook) = hook else { return Ok(None) };
        let hook_server = HookServer::open(hook.uses)?;
        self.poll.add(hook_server.as_fd(), HOOK_SERVER | key(id))?;
        preloaded(env, &hook.library, hook_server.name());
        Ok(Some(hook_server))
    }

    pub(super) fn hear_hook_server(&mut self, id: ProgramId) {
        let Some(live) = self.live.get_mut(&id) else { return };
        let (tree, proc) = (&live.tree, &self.proc);
        let admits = |pid| tree.has(proc, pid);
        let Some(hook_server) = &mut live.hook_server else { return };
        let heard = hook_server.hear(clock::monotonic() / NANOS, admits);
        let thread_limits = hook_server.uses().threads;
        if heard.too_much {
            self.note(
                id,
                "sends too many requests to cosched: only some of them are answered in each \
                 second, and a thread that cannot wait keeps what it had last, or what it would \
                 have without cosched",
            );
        }
        // A program without a thread limit sends no requests, unless it lies.
        if let Some(threads) = heard.requested.filter(|_| thread_limits) {
            self.tell(Happening::Requested { program: id, threads, blocked: heard.blocked });
        }
    }

    /// Sets a program's thread limit, and answers processes that wait for it.
    pub(super) fn limit_threads(&mut self, live: &mut Live, settings: &Settings) {
        self.offer_states(live);
        let cpus = settings.cpus.unwrap_or(self.cpus).len();
        let takes = live.hook_server.as_ref().is_some_and(|hook_server| hook_server.uses().threads);
        if settings.thread_limit.is_some() && !takes {
            self.tell(Happening::Refused(live.id, Aspect::Threads, Refusal::NotSupported));
        }
        let directed = self.ext.is_some() && live.by_ext != ByExt::Left;
        if let Some(hook_server) = &mut live.hook_server {
            hook_server.direct(directed);
            hook_server
                .limit_threads(settings.thread_limit, u16::try_from(cpus).unwrap_or(u16::MAX));
        }
    }

    /// When programs with the hook need the next heartbeat.
    pub(super) fn next_beat(&self) -> Nanos {
        let is_due = |hook_server: &HookServer| hook_server.is_used() || hook_server.is_tired();
        match self.live.values().any(|live| live.hook_server.as_ref().is_some_and(is_due)) {
            true => self.last_beat + Nanos::from_millis(BEAT),
            false => Nanos::NEVER,
        }
    }

    pub(super) fn beat(&mut self) {
        let now = self.clock.now();
        if now < self.next_beat() {
            return;
        }
        self.last_beat = now;
        let at = self.clock.monotonic(now).0 / NANOS;
        self.live
            .values_mut()
            .filter_map(|live| live.hook_server.as_mut())
            .for_each(|hook_server| hook_server.beat(at));
        self.tell_barrier_stats();
    }
}
