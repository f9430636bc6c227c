set -eu
mkdir -p /opt/uom/nuget/packages
settings() {
    value=$(printf '%s' "$2" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/"/\&quot;/g')
    echo '<?xml version="1.0" encoding="utf-8"?>'
    # An address without TLS is refused unless the settings say that it is meant.
    plain=
    case "$2" in http:*) plain=' allowInsecureConnections="true"' ;; esac
    echo "<configuration><packageSources><clear /><add key=\"$1\" value=\"$value\"$plain /></packageSources></configuration>"
}
settings snapshot /opt/uom/nuget/packages > /opt/uom/nuget/offline.config
sources=-p:RestoreConfigFile=/opt/uom/nuget/build.config
case "$UOM_NUGET_SOURCE" in
    '')
        # A file without sources would mean that there are none.
        sources=
        echo "packages come from the SDK's own sources"
        ;;
    /*)
        if [ ! -d "$UOM_NUGET_SOURCE" ]; then
            echo "UOM_NUGET_SOURCE: $UOM_NUGET_SOURCE is no directory in the sandbox." >&2
            echo "On the local platform, name it in UOM_TOOLCHAINS too; sandboxes see no other directories." >&2
            exit 1
        fi
        settings chosen "$UOM_NUGET_SOURCE" > /opt/uom/nuget/build.config
        echo "export NUGET_CERT_REVOCATION_MODE=offline" >> /opt/uom/dotnet.env
        echo "packages come from $UOM_NUGET_SOURCE"
        ;;
    *)
        settings chosen "$UOM_NUGET_SOURCE" > /opt/uom/nuget/build.config
        echo "packages come from the source named in UOM_NUGET_SOURCE"
        ;;
esac
echo "sources=$sources" >> /opt/uom/dotnet.env
