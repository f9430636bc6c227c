set -eu
mkdir -p /opt/uom/bin
seen=
for directory in ${DOTNET_ROOT:+"$DOTNET_ROOT"} $(printf '%s' "$PATH" | tr ':' ' ') \
    /usr/share/dotnet /usr/lib/dotnet /usr/local/share/dotnet /opt/*; do
    [ -x "$directory/dotnet" ] && [ ! -d "$directory/dotnet" ] || continue
    root=$(dirname "$(readlink -f "$directory/dotnet")")
    versions=$(ls "$root/sdk" 2>/dev/null | grep '^[0-9]' | sort -t. -k1,1n -k2,2n -k3,3n || true)
    version=$(printf '%s\n' "$versions" | tail -n 1)
    major=${version%%.*}
    if [ "${major:-0}" -ge 10 ]; then
        ln -sfn "$root" /opt/uom/dotnet
        {
            echo "export DOTNET_ROOT=$root"
            echo "csc=$root/sdk/$version/Roslyn/bincore/csc.dll"
            # Without the ICU libraries the runtime does not start, unless it is told to do without.
            if ! ls /usr/lib/libicuuc.so* /usr/lib64/libicuuc.so* /usr/lib/*/libicuuc.so* /usr/local/lib/libicuuc.so* \
                2>/dev/null | grep -q .; then
                echo "export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"
            fi
        } > /opt/uom/dotnet.env
        echo ".NET SDK $version: $root"
        grep -q INVARIANT /opt/uom/dotnet.env && echo "no ICU libraries: cultures are invariant, and the client of SQL Server does not work" || true
        exit 0
    fi
    seen="$seen ${version:-no SDK} ($directory)"
done
echo "A .NET SDK of version 10 or newer is needed; found:${seen:- none}." >&2
echo "Install one, or name its directory in UOM_TOOLCHAINS." >&2
exit 1
