# Runs one phase of a validation inside the sandbox: sh phase.sh NAME LIMIT GRACE VALUES INPUT FRESH LEASE
#
#   NAME    of the phase
#   LIMIT   seconds until the program's group gets SIGTERM
#   GRACE   seconds from there to SIGKILL
#   VALUES  `values` reads environment assignments from standard input up to a line with a single dot
#   INPUT   file that becomes the program's standard input
#   FRESH   `fresh` empties the results and build directories first
#   LEASE   until when the session is somebody's; read by other clients, not here
#
# Above this text stand the settings of the run: where things lie ($here, $workspace, $results, $result, $build, $home,
# $tmp), its mark ($session), and the functions `defaults`, `variables` and `choose_command`.
#
# The exit code is the program's: 128 + n for signal n, 124 when LIMIT ended it. NAME.status tells what an exit code
# cannot: time inside the sandbox, the kernel's count of out-of-memory kills, what lies where the result should be.
# Everything is builtin but mkdir, timeout and grep, because each process costs a millisecond.

phase=$1 limit=$2 grace=$3 values=$4 input=$5 fresh=$6
exec 3<&0 </dev/null
umask 022
choose_command "$phase"

count_oom_kills() {
    oom=
    for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$file" ] || continue
        while read -r key value; do
            [ "$key" != oom_kill ] || oom=$value
        done <"$file"
        [ -z "$oom" ] || return 0
    done
}

if [ "$fresh" = fresh ] && { [ -e "$results" ] || [ -L "$results" ] || [ -e "$build" ]; }; then
    rm -rf "$results" "$build"
fi
[ -d "$tmp" ] && [ -d "$results" ] && [ -d "$build" ] || mkdir -p -m 700 "$tmp" "$home" "$results" "$build"

for limiter in /usr/bin/timeout /bin/timeout ''; do
    [ ! -x "$limiter" ] || break
done

count_oom_kills
oom_before=$oom
read -r started _ </proc/uptime
(
    defaults
    if [ "$values" = values ]; then
        while :; do
            IFS= read -r line <&3 || { echo "the environment did not arrive" >&2; exit 125; }
            [ "$line" != . ] || break
            eval "$line"
        done
    fi
    exec 3<&-
    variables
    cd "$workspace" || exit 125
    # timeout makes a process group of its own, whose id is its process id: that of this subshell.
    if [ -n "$limiter" ]; then
        exec "$limiter" -k "$grace" "$limit" /bin/sh -c "$command" "$phase" <"$input"
    fi
    exec /bin/sh -c "$command" "$phase" <"$input"
) &
program=$!
exec 3<&-
wait "$program" 2>/dev/null  # the shell would tell of a killed job in words of its own
code=$?
read -r ended _ </proc/uptime

# What the program left running: first its group, then whatever carries the session's mark in its environment.
kill -s KILL -- "-$program" 2>/dev/null
round=0
while [ "$round" -lt 5 ]; do
    round=$((round + 1))
    found=
    for file in $(grep -lasF "UOM_SESSION=$session" /proc/[0-9]*/environ 2>/dev/null); do
        file=${file#/proc/}
        ! kill -s KILL "${file%/environ}" 2>/dev/null || found=yes
    done
    [ -n "$found" ] || break
done

count_oom_kills
kind=missing
if [ -L "$results" ] || [ -L "$result" ]; then
    kind=link
elif [ -f "$result" ]; then
    kind=file
elif [ -d "$result" ]; then
    kind=directory
elif [ -e "$result" ]; then
    kind=other
fi
printf 'exit %s\nstarted %s\nended %s\noom %s %s\nresult %s\n' \
    "$code" "$started" "$ended" "${oom_before:--}" "${oom:--}" "$kind" >"$here/$phase.status"
exit "$code"
