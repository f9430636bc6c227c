set -eu
mkdir -p /tmp/uom-training /opt/uom/cache
cd /tmp/uom-training
cat > Training.java <<'EOF'
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

public class Training {
    enum Kind { SMALL, LARGE }

    sealed interface Shape permits Circle, Square {}

    record Circle(double radius) implements Shape {}

    record Square(double side) implements Shape {}

    record Order(int id, String customer, BigDecimal total, LocalDate placed, Kind kind) {}

    static <T, K extends Comparable<K>> Map<K, List<T>> grouped(List<T> rows, Function<T, K> key) {
        return rows.stream().collect(Collectors.groupingBy(key, LinkedHashMap::new, Collectors.toList()));
    }

    static double area(Shape shape) {
        return switch (shape) {
            case Circle(var radius) when radius > 0 -> Math.PI * radius * radius;
            case Circle circle -> 0;
            case Square square -> square.side() * square.side();
        };
    }

    public static void main(String[] args) throws IOException {
        var orders = new ArrayList<Order>();
        orders.add(new Order(1, "Anna", new BigDecimal("12.50"), LocalDate.of(2024, 2, 29), Kind.SMALL));
        List raw = new ArrayList();
        raw.add("unchecked");
        Comparator<Order> byTotal = Comparator.comparing(Order::total).thenComparing(Order::id);
        Optional<Order> first = orders.stream().filter(order -> order.total().signum() > 0).min(byTotal);
        String text = """
            {"count": %d, "first": "%s"}
            """.formatted(grouped(orders, Order::customer).size(), first.map(Order::customer).orElse(null));
        try (var writer = Files.newBufferedWriter(Path.of(System.getenv().getOrDefault("UOM_RESULT_FILE", "out")))) {
            writer.write(text + area(new Square(2)));
        } catch (IOException | RuntimeException error) {
            throw new IllegalStateException("not written", error);
        }
    }
}
EOF
if /opt/uom/jdk/bin/javac -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData \
    -J-XX:AOTCacheOutput=/opt/uom/cache/javac.aot -encoding UTF-8 -proc:none -g -parameters \
    -Xlint:deprecation,removal,unchecked -d classes Training.java && [ -f /opt/uom/cache/javac.aot ]; then
    echo "AOT cache of javac: $(stat -c %s /opt/uom/cache/javac.aot) bytes"
else
    rm -f /opt/uom/cache/javac.aot
    echo "warning: this JDK made no AOT cache of javac; a build takes about 0.6 s longer"
fi
cd /
rm -rf /tmp/uom-training
