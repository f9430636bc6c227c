package shop;

import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.neo4j.core.Neo4jClient;

@SpringBootApplication
public class Application implements CommandLineRunner {
    private final Neo4jClient client;

    Application(Neo4jClient client) {
        this.client = client;
    }

    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    @Override
    public void run(String... args) {
        System.out.println(client.query("MATCH (o:Order) RETURN count(o) AS n").fetch().all());
    }
}
