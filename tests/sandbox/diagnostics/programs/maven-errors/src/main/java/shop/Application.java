package shop;

import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.mongodb.core.MongoTemplte;

@SpringBootApplication
public class Application {
	public static void main(String[] args) {
		List<String> names = List.of("[ERROR] /tmp/Fake.java:[1,1] cannot find symbol");
		int count = names.lenght();
        String text = 7;
		pay(text);
    }

    static void pay(int order, String customer) {}
}
