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
import org.neo4j.driver.exceptions.Neo4jException;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.dao.DataAccessException;
import org.springframework.data.neo4j.core.Neo4jClient;
import org.springframework.data.neo4j.core.Neo4jTemplate;
import org.springframework.data.neo4j.core.schema.GeneratedValue;
import org.springframework.data.neo4j.core.schema.Id;
import org.springframework.data.neo4j.core.schema.Node;
import org.springframework.data.neo4j.core.schema.Property;
import org.springframework.data.neo4j.core.schema.Relationship;
import org.springframework.data.neo4j.core.schema.RelationshipProperties;
import org.springframework.data.neo4j.core.schema.TargetNode;
import org.springframework.data.neo4j.repository.Neo4jRepository;
import org.springframework.data.neo4j.repository.query.Query;
import org.springframework.transaction.TransactionException;
import tools.jackson.databind.ObjectMapper;

/** Does a little of everything, so that the classes it loads are those that programs load. No database is there. */
@SpringBootApplication
public class Training {
    public static void main(String[] args) {
        SpringApplication.run(Training.class, args).close();
    }

    @Bean
    CommandLineRunner train(Orders orders, Neo4jTemplate template, Neo4jClient client, ObjectMapper json) {
        return args -> {
            var order = new Order();
            order.customer = "žluťoučký 日本語 😀";
            order.total = new BigDecimal("12.50");
            order.placed = LocalDate.of(2024, 2, 29);

            List<Runnable> queries = List.of(
                    () -> orders.findByCustomerOrderByPlacedDesc("Anna"),
                    () -> orders.aboveTotal(1.0),
                    () -> template.findAll(Order.class),
                    () -> client.query("MATCH (o:Order) RETURN count(o) AS n").fetch().all());
            for (var query : queries) {
                try {
                    query.run();
                } catch (DataAccessException | TransactionException | Neo4jException expected) {
                    // The driver has tried; there is nothing to connect to.
                }
            }
            var answer = new LinkedHashMap<String, Object>();
            answer.put("orders", Map.of("count", 1, "firstSample", order, "at", Instant.EPOCH));
            json.writerWithDefaultPrettyPrinter().writeValueAsString(answer);
            new PrintStream(System.out, true, StandardCharsets.UTF_8).println(order.customer);
        };
    }
}

@Node("Order")
class Order {
    @Id
    @GeneratedValue
    public String id;

    public String customer;

    @Property("total")
    public BigDecimal total;

    public LocalDate placed;

    @Relationship(type = "CONTAINS")
    public List<Line> lines = new ArrayList<>();
}

@RelationshipProperties
class Line {
    @Id
    @GeneratedValue
    public Long id;

    public int quantity;

    @TargetNode
    public Product product;
}

@Node
class Product {
    @Id
    public String name;
}

interface Orders extends Neo4jRepository<Order, String> {
    List<Order> findByCustomerOrderByPlacedDesc(String customer);

    @Query("MATCH (o:Order) WHERE toFloat(o.total) > $total RETURN o")
    List<Order> aboveTotal(double total);
}
