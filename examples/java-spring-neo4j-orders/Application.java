package orders;

import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.domain.Sort;
import org.springframework.data.neo4j.core.Neo4jClient;
import org.springframework.data.neo4j.core.schema.Id;
import org.springframework.data.neo4j.core.schema.Node;
import org.springframework.data.neo4j.core.schema.Relationship;
import org.springframework.data.neo4j.repository.Neo4jRepository;
import org.springframework.data.neo4j.repository.query.Query;
import tools.jackson.databind.json.JsonMapper;

/** Asks the order database six questions and writes count, first and last row of each answer. */
@SpringBootApplication
public class Application implements CommandLineRunner {
    private final Customers customers;
    private final Orders orders;
    private final Neo4jClient client;

    Application(Customers customers, Orders orders, Neo4jClient client) {
        this.customers = customers;
        this.orders = orders;
        this.client = client;
    }

    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    @Override
    public void run(String... args) throws Exception {
        var answers = new LinkedHashMap<String, Object>();
        answers.put("ordersByCustomer", answer(ordersByCustomer()));
        answers.put("revenueByCity", answer(revenueByCity()));
        answers.put("revenueByMonth", answer(revenueByMonth()));
        answers.put("openOrders", answer(openOrders()));
        answers.put("customersWithoutOrders", answer(customersWithoutOrders()));
        answers.put("productsInSeveralOrders", answer(productsInSeveralOrders()));
        Files.writeString(Path.of(System.getenv("NEO4J_RESULTS_PATH")), new JsonMapper().writeValueAsString(answers));
    }

    /** Customers without orders stay. */
    List<Map<String, Object>> ordersByCustomer() {
        return customers.findAll(Sort.by("id")).stream()
                .map(customer -> row("customerId", customer.id(), "name", customer.name(),
                        "orders", customer.orders().size(),
                        "lastPlaced", customer.orders().stream().map(Order::placed).max(LocalDate::compareTo).orElse(null)))
                .toList();
    }

    /** Customers without a city are a group of their own, and the first one. */
    List<Map<String, Object>> revenueByCity() {
        return query("""
                MATCH (c:Customer)-[:PLACED]->(:Order)-[line:CONTAINS]->(:Product)
                RETURN c.city AS city, sum(line.quantity * line.cents) AS cents
                ORDER BY city IS NOT NULL, city
                """).stream().map(found -> row("city", found.get("city"), "revenue", money(found))).toList();
    }

    List<Map<String, Object>> revenueByMonth() {
        return query("""
                MATCH (o:Order)-[line:CONTAINS]->(:Product)
                RETURN substring(toString(o.placed), 0, 7) AS month, count(DISTINCT o) AS orders,
                    sum(line.quantity * line.cents) AS cents
                ORDER BY month
                """).stream().map(found ->
                        row("month", found.get("month"), "orders", found.get("orders"), "revenue", money(found))).toList();
    }

    List<Map<String, Object>> openOrders() {
        var names = new LinkedHashMap<Integer, String>();
        customers.findAll().forEach(customer -> customer.orders().forEach(order -> names.put(order.id(), customer.name())));
        return orders.findByShippedIsNullOrderByPlacedDesc().stream()
                .map(order -> row("orderId", order.id(), "customer", names.get(order.id()),
                        "placed", order.placed(), "note", order.note()))
                .toList();
    }

    List<Map<String, Object>> customersWithoutOrders() {
        return customers.withoutOrders().stream()
                .map(customer -> row("customerId", customer.id(), "name", customer.name(), "city", customer.city(),
                        "joined", customer.joined()))
                .toList();
    }

    List<Map<String, Object>> productsInSeveralOrders() {
        return query("""
                MATCH (o:Order)-[line:CONTAINS]->(p:Product)
                WITH p, count(DISTINCT o) AS orders, sum(line.quantity) AS quantity, min(line.cents) AS cents
                WHERE orders > 1
                RETURN p.name AS product, orders, quantity, cents
                ORDER BY quantity DESC, product
                """).stream().map(found -> row("product", found.get("product"), "orders", found.get("orders"),
                        "quantity", found.get("quantity"), "lowestPrice", money(found))).toList();
    }

    Collection<Map<String, Object>> query(String cypher) {
        return client.query(cypher).fetch().all();
    }

    /** The graph keeps cents, because it has no decimal numbers; money is text with two decimals. */
    static String money(Map<String, Object> found) {
        return BigDecimal.valueOf((Long) found.get("cents"), 2).toPlainString();
    }

    static Map<String, Object> answer(List<Map<String, Object>> rows) {
        return row("count", rows.size(), "firstSample", rows.getFirst(), "lastSample", rows.getLast());
    }

    static Map<String, Object> row(Object... pairs) {
        var row = new LinkedHashMap<String, Object>();
        for (int i = 0; i < pairs.length; i += 2) {
            row.put((String) pairs[i], pairs[i + 1] instanceof LocalDate date ? date.toString() : pairs[i + 1]);
        }
        return row;
    }
}

@Node
record Customer(
        @Id Integer id, String name, String city, LocalDate joined, @Relationship(type = "PLACED") List<Order> orders) {}

@Node
record Order(@Id Integer id, LocalDate placed, LocalDate shipped, String note) {}

interface Customers extends Neo4jRepository<Customer, Integer> {
    @Query("MATCH (c:Customer) WHERE NOT (c)-[:PLACED]->() RETURN c ORDER BY c.id")
    List<Customer> withoutOrders();
}

interface Orders extends Neo4jRepository<Order, Integer> {
    List<Order> findByShippedIsNullOrderByPlacedDesc();
}
