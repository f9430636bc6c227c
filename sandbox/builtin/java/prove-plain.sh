set -eu
mkdir -p /tmp/uom-proof/app /tmp/uom-proof/.uom
cd /tmp/uom-proof
cat > app/Main.java <<'EOF'
package app;

class Main {
    public static void main(String[] args) {
        System.out.println("žluťoučký 日本語 😀");
    }
}
EOF
export UOM_ENTRY_POINT=app/Main.java UOM_BUILD_DIR=/tmp/uom-proof/.uom UOM_HEAP_MIB=256 UOM_CPU=1
/opt/uom/bin/java-build
test "$(/opt/uom/bin/java-run)" = 'žluťoučký 日本語 😀'
cd /
rm -rf /tmp/uom-proof
