# Asks databases whether they are there, from inside the sandbox, all at once: bash preflight.sh MILLISECONDS
#
# Below this text stand lines of two forms, and at the end `run`.
#
#   know HOST ADDRESS    where names cannot be asked for: a line for /etc/hosts
#   probe NUMBER NAME HOST PORT COUNT GREETING
#
# GREETING, with escapes of printf, is sent to PORT of HOST; COUNT bytes of the answer are awaited and told in
# hexadecimal. Whether a server of the right kind answers so is judged outside. After MILLISECONDS nobody is waited for.
# For each endpoint one line is printed:
#
#   NUMBER NAME answered HEX     COUNT bytes came
#   NUMBER NAME closed HEX       fewer came, then the connection ended
#   NUMBER NAME failed REASON    in the words of the system
#   NUMBER NAME silent           it accepted, and said nothing in time
#   NUMBER NAME unreached        it did not accept in time
#
# Connections are bash's own (/dev/tcp), so nothing has to be installed. What still waits at the end is ended with the
# group of the phase.

export LC_ALL=C  # errors of the system in English, bytes for characters
milliseconds=$1
directory=${TMPDIR:-/tmp}
names=() numbers=() probes=()

know() {
    local line kept=
    while IFS= read -r line; do
        [ "$line" != "$2 $1" ] || return 0
        [[ $line == *" $1" ]] || kept+=$line$'\n'
    done </etc/hosts
    { printf '%s%s %s\n' "$kept" "$2" "$1" >/etc/hosts; } 2>/dev/null || true
}

probe() {
    numbers+=("$1") names+=("$2")
    probes+=("$3" "$4" "$5" "$6")
}

# Microseconds; bash before 5.0 counts whole seconds only.
clock() {
    now=${EPOCHREALTIME:-$SECONDS.000000}
    now=${now/./}
}

# Runs `talk` with the connection as descriptor 3, or tells why there is none.
converse() {
    local index=$1 host=$2 port=$3 said
    exec 2>"$directory/preflight.$index"
    talk "$index" "$4" "$5" 3<>"/dev/tcp/$host/$port" && return
    # The reason is at the end of the first line: `preflight.sh: connect: Connection refused`.
    IFS= read -r said <"$directory/preflight.$index"
    echo "$index failed ${said##*: }"
}

talk() {
    local index=$1 count=$2 byte hex= code
    echo "$index silent"
    # By a process of its own: writing to a connection that was reset may end it, and takes the error from the reader.
    (printf "$3" >&3) 2>/dev/null || echo "Connection reset by peer" >&2
    while [ "${#hex}" -lt "$((2 * count))" ]; do
        if ! IFS= read -r -d '' -n 1 -u 3 byte; then
            [ -n "$hex" ] || [ ! -s "$directory/preflight.$index" ] || return 1
            echo "$index closed $hex"
            return 0
        fi
        # A NUL ends an empty text; for a byte above 127 some versions tell a negative number.
        printf -v code '%d' "'$byte"
        printf -v byte '%02x' "$(((code + 256) % 256))"
        hex=$hex$byte
    done
    echo "$index answered $hex"
}

run() {
    local index line left deadline now state=()
    for index in "${!names[@]}"; do
        state[index]=unreached
    done
    clock
    deadline=$((now + milliseconds * 1000))
    exec 4< <(
        for index in "${!names[@]}"; do
            converse "$index" "${probes[@]:index * 4:4}" &
        done
        wait
    )
    left=$((milliseconds * 1000))
    while [ "$left" -gt 0 ]; do
        printf -v left '%d.%06d' "$((left / 1000000))" "$((left % 1000000))"
        # It ends with the last of them, or with the time.
        IFS= read -r -t "$left" -u 4 line || break
        state[${line%% *}]=${line#* }
        clock
        left=$((deadline - now))
    done
    for index in "${!names[@]}"; do
        echo "${numbers[index]} ${names[index]} ${state[index]}"
    done
}

