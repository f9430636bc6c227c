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
# $tmp), its mark ($session), a line end ($nl), and the functions `defaults`, `variables` and `choose_command`, which
# take that line end as their argument.
#
# The exit code is the program's: 128 + n for signal n, 124 when LIMIT ended it. NAME.status tells what an exit code
# cannot: time inside the sandbox, the kernel's count of out-of-memory kills, what lies where the result should be, how
# many processes could not be ended.
# Everything is builtin but mkdir, timeout and grep, because each process costs a millisecond.

phase=$1 limit=$2 grace=$3 values=$4 input=$5 fresh=$6
exec 3<&0 </dev/null
umask 022
choose_command "$nl"

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
if ! [ -d "$tmp" ] || ! [ -d "$results" ] || ! [ -d "$build" ]; then
    mkdir -p -m 700 "$tmp" "$home" "$results" "$build" || {
        # Before the first phase nothing of this run can be the reason: an earlier one has spoilt the sandbox.
        [ "$fresh" != fresh ] || echo unfit >"$here/$phase.status"
        exit 125
    }
fi

for limiter in /usr/bin/timeout /bin/timeout ''; do
    [ ! -x "$limiter" ] || break
done

count_oom_kills
oom_before=$oom
read -r started _ </proc/uptime
(
    cd "$workspace" || exit 125
    # Arguments, since the program's variables may have any of our names.
    set -- "$nl" "$values" "$input" "$limiter" -k "$grace" "$limit" /bin/sh -c "$command" "$phase"
    defaults "$1"
    if [ "$2" = values ]; then
        while :; do
            IFS= read -r UOM_LINE <&3 || { echo "the environment did not arrive" >&2; exit 125; }
            [ "$UOM_LINE" != . ] || break
            eval "$UOM_LINE"
        done
        unset UOM_LINE
    fi
    exec 3<&- <"$3"
    variables "$1"
    shift 3
    # timeout makes a process group of its own, whose id is its process id: that of this subshell.
    [ -n "$1" ] || shift 4
    exec "$@"
) &
program=$!
exec 3<&-
wait "$program" 2>/dev/null  # the shell would tell of a killed job in words of its own
code=$?
read -r ended _ </proc/uptime

# The session's shell and what is above it hold the phase's output, too, until this script has ended.
above=" $$ " parent=$PPID
while [ "${parent:-0}" -gt 0 ]; do
    above="$above$parent " upper=0
    [ ! -r "/proc/$parent/status" ] || while read -r key value; do
        [ "$key" != PPid: ] || upper=$value
    done <"/proc/$parent/status"
    parent=$upper
done

# True for a descriptor, /proc/PID/fd/N, through which a process can write to the phase's output.
holds_output() {
    { [ -p "$1" ] && { [ "$1" -ef /proc/$$/fd/1 ] || [ "$1" -ef /proc/$$/fd/2 ]; }; } || return 1
    while read -r key value; do
        [ "$key" != flags: ] || case $value in *[12]) return 0 ;; esac
    done 2>/dev/null <"${1%/fd/*}/fdinfo/${1##*/}"
    return 1
}

# What the program left running: first its group, then whatever carries the session's mark in its environment, and
# whoever holds the phase's output, whose end the platform would wait for.
kill -s KILL -- "-$program" 2>/dev/null
round=0
while [ "$round" -lt 10 ]; do
    # The kernel may need a moment to end what was large.
    round=$((round + 1)) found=0
    [ "$round" -lt 5 ] || sleep 0.1
    for file in $(grep -lasF "UOM_SESSION=$session" /proc/[0-9]*/environ 2>/dev/null); do
        file=${file#/proc/}
        ! kill -s KILL "${file%/environ}" 2>/dev/null || found=$((found + 1))
    done
    for file in /proc/[0-9]*/fd/*; do
        holds_output "$file" || continue
        file=${file#/proc/}
        case $above in *" ${file%%/*} "*) continue ;; esac
        ! kill -s KILL "${file%%/*}" 2>/dev/null || found=$((found + 1))
    done
    [ "$found" != 0 ] || break
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
# What the program has put in the note's place, such as a pipe, must not hold it up or lead it elsewhere.
note=$here/$phase.status
if [ -e "$note" ] || [ -L "$note" ]; then
    rm -rf "$note"
fi
printf 'exit %s\nstarted %s\nended %s\noom %s %s\nresult %s\nleft %s\n' \
    "$code" "$started" "$ended" "${oom_before:--}" "${oom:--}" "$kind" "$found" >"$note"
exit "$code"
