package shop;

import com.mongodb.client.MongoClients;

public class Application {
    public static void main(String[] args) {
        try (var client = MongoClients.create(System.getenv("MONGODB_URI"))) {
            System.out.println(client.getDatabase("shop").getCollection("orders").countDocuments());
        }
    }
}
