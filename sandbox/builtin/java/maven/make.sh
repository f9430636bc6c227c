set -eu
export UOM_HEAP_MIB=512 UOM_CPU=2
. /opt/uom/bin/maven-environment
work=$(mktemp -d)
. /opt/uom/templates/maven/variants
goal=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath
echo "$goal" > /opt/uom/templates/maven/classpath-goal
for project in "$work"/*; do
    cd "$project"
    /opt/uom/bin/maven-fetch maven compile "$goal" -Dmdep.outputFile="$work/classpath"
done
cd /
rm -rf "$work"
echo "plugins of Maven: $(du -sm /opt/uom/maven/repository | cut -f1) MiB"
chmod -R a+rX,a-w /opt/uom/maven/repository
