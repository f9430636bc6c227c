import com.mongodb.client.MongoClients;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Date;
import java.util.stream.StreamSupport;
import org.bson.Document;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A server of MongoDB's protocol with the orders in it. Prints its address; ends with its standard input. */
class MongoServer {
    public static void main(String[] args) throws Exception {
        var data = new JsonMapper().readTree(Path.of(args[0]).toFile());
        var server = new de.bwaldvogel.mongo.MongoServer(new MemoryBackend());
        var address = server.bind();
        var uri = "mongodb://127.0.0.1:" + address.getPort() + "/shop";
        try (var client = MongoClients.create(uri)) {
            var shop = client.getDatabase("shop");
            for (var name : new String[] {"customers", "orders"}) {
                var rows = StreamSupport.stream(data.get(name).spliterator(), false).map(MongoServer::document).toList();
                shop.getCollection(name).insertMany(rows);
            }
        }
        System.out.println(uri);
        System.in.read();
        server.shutdownNow();
    }

    private static Document document(JsonNode row) {
        var document = new Document();
        for (var field : row.properties()) {
            document.append(field.getKey().equals("id") ? "_id" : field.getKey(), value(field.getKey(), field.getValue()));
        }
        return document;
    }

    private static Object value(String name, JsonNode value) {
        if (value.isNull()) {
            return null;
        }
        return switch (name) {
            case "joined", "placed", "shipped" ->
                Date.from(LocalDate.parse(value.asString()).atStartOfDay(ZoneOffset.UTC).toInstant());
            case "price" -> new BigDecimal(value.asString());
            case "lines" -> StreamSupport.stream(value.spliterator(), false).map(MongoServer::document).toList();
            default -> value.isInt() ? (Object) value.intValue() : value.asString();
        };
    }
}
