package uom.training;

import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.bson.Document;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.dao.DataAccessException;
import org.springframework.data.annotation.Id;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.aggregation.Aggregation;
import org.springframework.data.mongodb.core.index.Indexed;
import org.springframework.data.mongodb.core.mapping.DBRef;
import org.springframework.data.mongodb.core.mapping.Field;
import org.springframework.data.mongodb.core.query.Criteria;
import org.springframework.data.mongodb.repository.MongoRepository;
import org.springframework.data.mongodb.repository.Query;
import tools.jackson.databind.ObjectMapper;

/** Does a little of everything, so that the classes it loads are those that programs load. No database is there. */
@SpringBootApplication
public class Training {
    public static void main(String[] args) {
        SpringApplication.run(Training.class, args).close();
    }

    @Bean
    CommandLineRunner train(Orders orders, MongoTemplate template, ObjectMapper json) {
        return args -> {
            var order = new Order();
            order.customer = "žluťoučký 日本語 😀";
            order.total = new BigDecimal("12.50");
            order.placed = LocalDate.of(2024, 2, 29);
            order.lines.add(new Line("Mouse", 2));
            var stored = new Document();
            template.getConverter().write(order, stored);
            var read = template.getConverter().read(Order.class, stored);

            var revenue = Aggregation.newAggregation(
                    Aggregation.match(Criteria.where("total").gt(0)),
                    Aggregation.unwind("lines"),
                    Aggregation.group("customer").sum("total").as("revenue").count().as("orders"),
                    Aggregation.sort(Sort.Direction.DESC, "revenue"),
                    Aggregation.limit(10));
            List<Runnable> queries = List.of(
                    () -> orders.findByCustomerOrderByPlacedDesc("Anna"),
                    () -> orders.aboveTotal(BigDecimal.ONE),
                    () -> template.aggregate(revenue, Order.class, Document.class));
            for (var query : queries) {
                try {
                    query.run();
                } catch (DataAccessException expected) {
                    // The driver has tried; there is nothing to connect to.
                }
            }
            var answer = new LinkedHashMap<String, Object>();
            answer.put("orders", Map.of("count", 1, "firstSample", read, "at", Instant.EPOCH));
            json.writerWithDefaultPrettyPrinter().writeValueAsString(answer);
            new PrintStream(System.out, true, StandardCharsets.UTF_8).println(read.customer);
        };
    }
}

@org.springframework.data.mongodb.core.mapping.Document("orders")
class Order {
    @Id
    public String id;

    @Indexed
    public String customer;

    @Field("total")
    public BigDecimal total;

    public LocalDate placed;
    public List<Line> lines = new ArrayList<>();

    @DBRef
    public Order previous;
}

record Line(String product, int quantity) {}

interface Orders extends MongoRepository<Order, String> {
    List<Order> findByCustomerOrderByPlacedDesc(String customer);

    @Query("{ 'total': { $gt: ?0 } }")
    List<Order> aboveTotal(BigDecimal total);
}
