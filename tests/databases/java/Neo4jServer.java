import java.nio.file.Path;
import java.util.Map;
import org.neo4j.harness.Neo4jBuilders;

/** A Neo4j server with the orders in it. Prints its address; ends with its standard input. */
class Neo4jServer {
    private static final String LOAD = """
            UNWIND $customers AS c
            CREATE (:Customer {id: c.id, name: c.name, city: c.city, joined: date(c.joined)})
            """;
    private static final String LOAD_ORDERS = """
            UNWIND $orders AS o
            MATCH (c:Customer {id: o.customerId})
            CREATE (c)-[:PLACED]->(order:Order {id: o.id, placed: date(o.placed), shipped: date(o.shipped), note: o.note})
            WITH o, order
            UNWIND o.lines AS line
            MERGE (p:Product {name: line.product})
            CREATE (order)-[:CONTAINS {quantity: line.quantity, cents: toInteger(replace(line.price, '.', ''))}]->(p)
            """;

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Map<String, Object> data = new com.fasterxml.jackson.databind.ObjectMapper().readValue(Path.of(args[0]).toFile(), Map.class);
        try (var server = Neo4jBuilders.newInProcessBuilder(Path.of(args[1])).withDisabledServer().build()) {
            server.defaultDatabaseService().executeTransactionally(LOAD, data);
            server.defaultDatabaseService().executeTransactionally(LOAD_ORDERS, data);
            System.out.println(server.boltURI());
            System.in.read();
        }
    }
}
