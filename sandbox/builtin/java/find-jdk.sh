set -eu
mkdir -p /opt/uom/bin
best=0
seen=
consider() {
    [ -x "$1/bin/javac" ] || return 0
    version=$(sed -n 's/^JAVA_VERSION="\(.*\)"$/\1/p' "$1/release" 2>/dev/null || true)
    [ -n "$version" ] || version=$("$1/bin/javac" -version 2>&1 | sed -n 's/^javac //p')
    major=${version%%[!0-9]*}
    seen="$seen $version ($1)"
    if [ "${major:-0}" -ge 25 ] && [ "$major" -gt "$best" ]; then
        best=$major
        jdk=$1
        chosen=$version
    fi
}
[ -z "${JAVA_HOME:-}" ] || consider "$JAVA_HOME"
for directory in $(printf '%s' "$PATH" | tr ':' ' '); do
    [ ! -x "$directory/javac" ] || consider "$(dirname "$(dirname "$(readlink -f "$directory/javac")")")"
    consider "$directory"
done
for directory in /usr/lib/jvm/* /opt/*; do
    [ -L "$directory" ] || consider "$directory"
done
if [ "$best" = 0 ]; then
    echo "A JDK of version 25 or newer is needed; found:${seen:- none}." >&2
    echo "Install one below /usr/lib/jvm, or name its directory in UOM_TOOLCHAINS." >&2
    exit 1
fi
ln -sfn "$jdk" /opt/uom/jdk
echo "JDK $chosen: $jdk"
