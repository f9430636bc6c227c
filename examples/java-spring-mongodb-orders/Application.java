package orders;

import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.bson.Document;
import org.bson.types.Decimal128;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.annotation.Id;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.aggregation.Aggregation;
import org.springframework.data.mongodb.core.aggregation.AggregationOperation;
import org.springframework.data.mongodb.core.aggregation.ArithmeticOperators.Multiply;
import org.springframework.data.mongodb.core.aggregation.DateOperators.DateToString;
import org.springframework.data.mongodb.core.mapping.Field;
import org.springframework.data.mongodb.core.mapping.FieldType;
import org.springframework.data.mongodb.repository.MongoRepository;
import tools.jackson.databind.json.JsonMapper;

/** Asks the order database six questions and writes count, first and last row of each answer. */
@SpringBootApplication
public class Application implements CommandLineRunner {
    private final Customers customers;
    private final Orders orders;
    private final MongoTemplate template;

    Application(Customers customers, Orders orders, MongoTemplate template) {
        this.customers = customers;
        this.orders = orders;
        this.template = template;
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
        Files.writeString(Path.of(System.getenv("MONGO_RESULTS_PATH")), new JsonMapper().writeValueAsString(answers));
    }

    /** Customers without orders stay. */
    List<Map<String, Object>> ordersByCustomer() {
        return customers.findAll(Sort.by("id")).stream().map(customer -> {
            var placed = orders.findByCustomerIdOrderByPlacedDesc(customer.id());
            return row("customerId", customer.id(), "name", customer.name(), "orders", placed.size(),
                    "lastPlaced", placed.isEmpty() ? null : placed.getFirst().placed());
        }).toList();
    }

    /** Customers without a city are a group of their own, and the first one. */
    List<Map<String, Object>> revenueByCity() {
        return aggregate(
                Aggregation.lookup("customers", "customerId", "_id", "customer"),
                Aggregation.unwind("customer"),
                Aggregation.unwind("lines"),
                Aggregation.group("customer.city").sum(lineTotal()).as("revenue"),
                Aggregation.sort(Sort.by("_id")))
                .stream().map(group -> row("city", group.get("_id"), "revenue", money(group, "revenue"))).toList();
    }

    List<Map<String, Object>> revenueByMonth() {
        return aggregate(
                Aggregation.unwind("lines"),
                Aggregation.project("lines").and(DateToString.dateOf("placed").toString("%Y-%m")).as("month"),
                Aggregation.group("month").addToSet("_id").as("orders").sum(lineTotal()).as("revenue"),
                Aggregation.sort(Sort.by("_id")))
                .stream().map(group -> row("month", group.get("_id"),
                        "orders", group.getList("orders", Integer.class).size(), "revenue", money(group, "revenue")))
                .toList();
    }

    List<Map<String, Object>> openOrders() {
        var names = new LinkedHashMap<Integer, String>();
        customers.findAll().forEach(customer -> names.put(customer.id(), customer.name()));
        return orders.findByShippedIsNullOrderByPlacedDesc().stream()
                .map(order -> row("orderId", order.id(), "customer", names.get(order.customerId()),
                        "placed", order.placed(), "note", order.note()))
                .toList();
    }

    List<Map<String, Object>> customersWithoutOrders() {
        var buyers = template.query(Order.class).distinct("customerId").as(Integer.class).all();
        return customers.findByIdNotInOrderById(buyers).stream()
                .map(customer -> row("customerId", customer.id(), "name", customer.name(), "city", customer.city(),
                        "joined", customer.joined()))
                .toList();
    }

    List<Map<String, Object>> productsInSeveralOrders() {
        return aggregate(
                Aggregation.unwind("lines"),
                Aggregation.group("lines.product").addToSet("_id").as("orders")
                        .sum("lines.quantity").as("quantity").min("lines.price").as("lowestPrice"),
                Aggregation.sort(Sort.by(Sort.Order.desc("quantity"), Sort.Order.asc("_id"))))
                .stream().filter(group -> group.getList("orders", Integer.class).size() > 1)
                .map(group -> row("product", group.get("_id"),
                        "orders", group.getList("orders", Integer.class).size(),
                        "quantity", group.get("quantity"), "lowestPrice", money(group, "lowestPrice")))
                .toList();
    }

    static Multiply lineTotal() {
        return Multiply.valueOf("lines.quantity").multiplyBy("lines.price");
    }

    List<Document> aggregate(AggregationOperation... operations) {
        return template.aggregate(Aggregation.newAggregation(operations), Order.class, Document.class).getMappedResults();
    }

    /** Money is text with two decimals, so that no digit depends on floating point. */
    static String money(Document group, String field) {
        return group.get(field, Decimal128.class).bigDecimalValue().setScale(2).toPlainString();
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

@org.springframework.data.mongodb.core.mapping.Document("customers")
record Customer(@Id Integer id, String name, String city, LocalDate joined) {}

@org.springframework.data.mongodb.core.mapping.Document("orders")
record Order(@Id Integer id, Integer customerId, LocalDate placed, LocalDate shipped, String note, List<Line> lines) {}

record Line(String product, int quantity, @Field(targetType = FieldType.DECIMAL128) BigDecimal price) {}

interface Customers extends MongoRepository<Customer, Integer> {
    List<Customer> findByIdNotInOrderById(List<Integer> ids);
}

interface Orders extends MongoRepository<Order, Integer> {
    List<Order> findByCustomerIdOrderByPlacedDesc(Integer customerId);

    List<Order> findByShippedIsNullOrderByPlacedDesc();
}
