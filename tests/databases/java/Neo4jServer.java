import java.nio.file.Path;
import java.util.Map;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.harness.Neo4jBuilders;

/**
 * An empty Neo4j server in a directory. Takes neo4j's password from UOM_TEST_PASSWORD, prints its address; ends with its
 * standard input, at once: an orderly end takes ten seconds, and nobody opens its files again.
 */
class Neo4jServer {
    public static void main(String[] args) throws Exception {
        var builder = Neo4jBuilders.newInProcessBuilder(Path.of(args[0]))
                .withDisabledServer()
                .withConfig(GraphDatabaseSettings.auth_enabled, true)
                .withConfig(GraphDatabaseSettings.udc_enabled, false);
        var server = builder.build();
        server.databaseManagementService().database("system").executeTransactionally(
                "ALTER USER neo4j SET PASSWORD $password CHANGE NOT REQUIRED",
                Map.of("password", System.getenv("UOM_TEST_PASSWORD")));
        System.out.println(server.boltURI());
        System.in.read();
        Runtime.getRuntime().halt(0);
    }
}
