set -eu
mkdir -p /opt/uom/maven
if ! command -v mvn >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && apt-get update -qq; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven </dev/null || true
    fi
fi
if ! command -v mvn >/dev/null 2>&1; then
    echo "Maven of version 3.8 or newer is needed; found: none." >&2
    echo "It cannot be installed here. On the local platform, install it on the machine: apt-get install maven" >&2
    exit 1
fi
{
    echo '<settings>'
    if [ -n "$UOM_MAVEN_MIRROR" ]; then
        value=$(printf '%s' "$UOM_MAVEN_MIRROR" | sed 's/&/\&amp;/g; s/</\&lt;/g')
        echo "<mirrors><mirror><id>chosen</id><mirrorOf>*</mirrorOf><url>$value</url></mirror></mirrors>"
    fi
    echo '</settings>'
} > /opt/uom/maven/settings.xml
echo "Maven: $(command -v mvn)"
