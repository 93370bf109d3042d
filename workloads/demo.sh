#!/usr/bin/env bash
# demo.sh COSCHED: the programs of demo.toml as Linux runs them, one after another, and as cosched runs them by itself; as
# an ordinary user.
#
# What cosched promises, it promises without root. So root gives its rights up
# first: everything is copied into a temporary folder that belongs to a user
# made for this, and nothing outside that folder is written. Before that, root
# gives that user a cgroup, which the default policy needs; it is removed at the end.
set -euo pipefail
cosched=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
user=cosched

home=$(mktemp -d "${TMPDIR:-/tmp}/cosched-demo.XXXXXX")
group=
finish() {
    # A cgroup can be removed only when this script is not in it.
    if [[ -n "$group" ]]; then
        echo $$ >"$(dirname "$group")/cgroup.procs" || true
        rmdir "$group" || true
    fi
    rm -rf "$home"
}
trap finish EXIT

# Makes a cgroup with the cpu controller that belongs to a user, and enters it; without one, programs are frozen.
enter_group() {
    local base path
    base=$(findmnt -no TARGET -t cgroup -O cpu | head -1)
    path=$(sed -n 's/^[0-9]*:\(.*,\)*cpu\(,.*\)*:\(.*\)/\3/p' /proc/self/cgroup)
    if [[ -z "$base" ]]; then
        base=$(findmnt -no TARGET -t cgroup2 | head -1)
        path=$(sed -n 's/^0:://p' /proc/self/cgroup)
        echo +cpu >"$base$path/cgroup.subtree_control" || return 0
    fi
    mkdir "$base$path/cosched-demo-$$" || return 0
    group=$base$path/cosched-demo-$$
    chown -R "$1:" "$group"
    echo $$ >"$group/cgroup.procs"
}

mkdir "$home/workloads"
cp -r "$here/bin" "$here/demo.toml" "$here/numpy-matmul.py" "$home/workloads"
cp "$cosched" "$home"

# Variables about threads and waiting would decide the outcome; profiles go to the temporary home.
unset ${!OMP_*} ${!GOMP_*} ${!KMP_*} ${!OPENBLAS_*} XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
export HOME=$home

as_user=()
if ((EUID == 0)); then
    if ! id "$user" >/dev/null 2>&1; then
        echo "demo: creating the system user \"$user\", which has no login and no home"
        useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user"
    fi
    echo "demo: running as the user \"$user\" in $home"
    chown -R "$user:" "$home"
    # Without it the demo shows what cosched does then, and says so.
    enter_group "$user" 2>/dev/null || true
    # Root's own environment is none of that user's business.
    as_user=(env -i PATH="$PATH" TERM="${TERM:-dumb}" LANG=C.UTF-8 HOME="$home" USER="$user"
        setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups)
fi

cd "$home"
"${as_user[@]}" ./cosched compare workloads/demo.toml --runs 1 --solo --out result
echo
echo "demo: what cosched made of it (cosched explain):"
"${as_user[@]}" ./cosched explain result/turns
