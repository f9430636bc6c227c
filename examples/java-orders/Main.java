import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Asks a small order database six questions and writes count, first and last row of each answer.
 *
 * <p>The database is a few lists: the JDK comes without a driver for any database.
 */
public class Main {
    record Customer(int id, String name, String city, LocalDate joined) {}

    record Order(int id, int customerId, LocalDate placed, LocalDate shipped, String note) {}

    record Line(int orderId, String product, int quantity, BigDecimal price) {
        BigDecimal total() {
            return price.multiply(BigDecimal.valueOf(quantity));
        }
    }

    static final List<Customer> CUSTOMERS = List.of(
            new Customer(1, "Anna Nováková", "Brno", LocalDate.parse("2023-01-15")),
            new Customer(2, "李小龙", "上海", LocalDate.parse("2023-03-01")),
            new Customer(3, "Ελένη Παπαδοπούλου", null, LocalDate.parse("2023-06-30")),
            new Customer(4, "O'Brien & Sons", "Cork", LocalDate.parse("2023-12-31")),
            new Customer(5, "Мария Иванова", "Brno", LocalDate.parse("2024-02-29")),
            new Customer(6, "😀 Smile \"Ltd\"", null, LocalDate.parse("2024-03-01")));

    static final List<Order> ORDERS = List.of(
            order(101, 1, "2024-01-10", "2024-01-12", "first order"),
            order(102, 2, "2024-01-31", "2024-02-02", null),
            order(103, 1, "2024-02-29", null, "příště rychleji"),
            order(104, 3, "2024-02-29", "2024-03-04", ""),
            order(105, 4, "2024-03-15", null, null),
            order(106, 5, "2024-03-31", "2024-04-01", "до двери"),
            order(107, 2, "2024-12-31", null, "跨年"));

    static final List<Line> LINES = List.of(
            line(101, "Keyboard", 1, "49.90"),
            line(101, "Mouse", 2, "19.95"),
            line(102, "Monitor", 2, "189.00"),
            line(102, "Cable", 5, "3.49"),
            line(103, "Mouse", 1, "19.95"),
            line(103, "Tea 茶", 10, "0.99"),
            line(104, "Keyboard", 3, "44.91"),
            line(105, "Cable", 100, "2.99"),
            line(105, "Monitor", 1, "199.99"),
            line(106, "Tea 茶", 1, "1.05"),
            line(107, "Monitor", 4, "175.25"),
            line(107, "Keyboard", 1, "49.90"));

    static final Map<Integer, Customer> CUSTOMER_BY_ID =
            CUSTOMERS.stream().collect(Collectors.toMap(Customer::id, Function.identity()));
    static final Map<Integer, Order> ORDER_BY_ID =
            ORDERS.stream().collect(Collectors.toMap(Order::id, Function.identity()));

    static Order order(int id, int customerId, String placed, String shipped, String note) {
        return new Order(id, customerId, LocalDate.parse(placed), shipped == null ? null : LocalDate.parse(shipped), note);
    }

    static Line line(int orderId, String product, int quantity, String price) {
        return new Line(orderId, product, quantity, new BigDecimal(price));
    }

    /** A left join: customers without orders stay. */
    static List<Map<String, Object>> ordersByCustomer() {
        return CUSTOMERS.stream().map(customer -> {
            var placed = ORDERS.stream().filter(order -> order.customerId() == customer.id()).map(Order::placed).toList();
            return row("customerId", customer.id(), "name", customer.name(), "orders", placed.size(),
                    "lastPlaced", placed.stream().max(Comparator.naturalOrder()).orElse(null));
        }).toList();
    }

    /** Customers without a city are a group of their own, and the first one. */
    static List<Map<String, Object>> revenueByCity() {
        var revenue = new TreeMap<String, BigDecimal>(Comparator.nullsFirst(Comparator.naturalOrder()));
        for (var line : LINES) {
            var customer = CUSTOMER_BY_ID.get(ORDER_BY_ID.get(line.orderId()).customerId());
            revenue.merge(customer.city(), line.total(), BigDecimal::add);
        }
        var rows = new ArrayList<Map<String, Object>>();
        revenue.forEach((city, total) -> rows.add(row("city", city, "revenue", total)));
        return rows;
    }

    static List<Map<String, Object>> revenueByMonth() {
        var months = LINES.stream().collect(Collectors.groupingBy(
                line -> YearMonth.from(ORDER_BY_ID.get(line.orderId()).placed()), TreeMap::new, Collectors.toList()));
        return months.entrySet().stream().map(month -> row(
                "month", month.getKey(),
                "orders", (int) month.getValue().stream().map(Line::orderId).distinct().count(),
                "revenue", sum(month.getValue()))).toList();
    }

    static List<Map<String, Object>> openOrders() {
        return ORDERS.stream().filter(order -> order.shipped() == null)
                .sorted(Comparator.comparing(Order::placed).reversed())
                .map(order -> row("orderId", order.id(), "customer", CUSTOMER_BY_ID.get(order.customerId()).name(),
                        "placed", order.placed(), "note", order.note()))
                .toList();
    }

    static List<Map<String, Object>> customersWithoutOrders() {
        return CUSTOMERS.stream()
                .filter(customer -> ORDERS.stream().noneMatch(order -> order.customerId() == customer.id()))
                .map(customer -> row("customerId", customer.id(), "name", customer.name(), "city", customer.city(),
                        "joined", customer.joined()))
                .toList();
    }

    static List<Map<String, Object>> productsInSeveralOrders() {
        return LINES.stream().collect(Collectors.groupingBy(Line::product)).entrySet().stream()
                .filter(product -> product.getValue().stream().map(Line::orderId).distinct().count() > 1)
                .map(product -> row(
                        "product", product.getKey(),
                        "orders", (int) product.getValue().stream().map(Line::orderId).distinct().count(),
                        "quantity", product.getValue().stream().mapToInt(Line::quantity).sum(),
                        "lowestPrice", product.getValue().stream().map(Line::price).min(Comparator.naturalOrder()).orElseThrow()))
                .sorted(Comparator.comparing((Map<String, Object> row) -> (Integer) row.get("quantity")).reversed()
                        .thenComparing(row -> (String) row.get("product")))
                .toList();
    }

    static BigDecimal sum(List<Line> lines) {
        return lines.stream().map(Line::total).reduce(BigDecimal.ZERO, BigDecimal::add);
    }

    static Map<String, Object> row(Object... pairs) {
        var row = new LinkedHashMap<String, Object>();
        for (int i = 0; i < pairs.length; i += 2) {
            row.put((String) pairs[i], pairs[i + 1]);
        }
        return row;
    }

    /** Money becomes text with two decimals, so that no digit depends on floating point; dates become text too. */
    static String json(Object value) {
        return switch (value) {
            case null -> "null";
            case Integer number -> number.toString();
            case BigDecimal money -> json(money.setScale(2).toPlainString());
            case Map<?, ?> map -> map.entrySet().stream()
                    .map(entry -> json(entry.getKey()) + ": " + json(entry.getValue()))
                    .collect(Collectors.joining(", ", "{", "}"));
            default -> '"' + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + '"';
        };
    }

    public static void main(String[] args) throws IOException {
        var queries = new LinkedHashMap<String, List<Map<String, Object>>>();
        queries.put("ordersByCustomer", ordersByCustomer());
        queries.put("revenueByCity", revenueByCity());
        queries.put("revenueByMonth", revenueByMonth());
        queries.put("openOrders", openOrders());
        queries.put("customersWithoutOrders", customersWithoutOrders());
        queries.put("productsInSeveralOrders", productsInSeveralOrders());

        var answers = new LinkedHashMap<String, Object>();
        queries.forEach((name, rows) -> {
            answers.put(name, row("count", rows.size(), "firstSample", rows.getFirst(), "lastSample", rows.getLast()));
            System.out.println(name + ": " + rows.size() + " rows");
        });
        Files.writeString(Path.of(System.getenv("UOM_RESULT_FILE")), json(answers));
    }
}
