set -eu
export UOM_HEAP_MIB=512 UOM_CPU=2 UOM_ENTRY_POINT=pom.xml
work=$(mktemp -d)
. /opt/uom/templates/maven/variants
for project in "$work"/*; do
    cd "$project"
    mkdir .uom
    export UOM_BUILD_DIR="$project/.uom"
    /opt/uom/bin/maven-build maven
    test "$(/opt/uom/bin/java-run)" = 'žluťoučký 日本語 😀'
done
cd /
rm -rf "$work"
