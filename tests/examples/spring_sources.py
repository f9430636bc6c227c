"""Programs for the Spring frameworks, as a caller would send them."""

from __future__ import annotations

from pathlib import Path

from sandbox.profiles import builtin_profile

TEXT = "žluťoučký 日本語 😀"
MONGODB = "spring-data-mongodb"
NEO4J = "spring-data-neo4j"
FRAMEWORKS = (MONGODB, NEO4J)

Files = dict[str, str | bytes]


def pom(framework: str) -> str:
    """The template's project file, which a caller may send as well."""
    folder = Path(__file__).parent.parent.parent / "sandbox/builtin/java"
    assert framework in builtin_profile("java").frameworks
    return (folder / framework / "pom.xml").read_text(encoding="utf-8")


def application(body: str, *, imports: str = "", rest: str = "") -> str:
    """A Spring Boot application in one file.

    Args:
        body: Statements of the run method.
        imports: Further imports.
        rest: Further types of the file.
    """
    return f"""
package shop;

import java.nio.file.*;
import java.util.*;
import org.springframework.boot.*;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.core.env.Environment;
{imports}

@SpringBootApplication
public class Application implements CommandLineRunner {{
    private final Environment environment;
    private final org.springframework.context.ApplicationContext context;

    Application(Environment environment, org.springframework.context.ApplicationContext context) {{
        this.environment = environment;
        this.context = context;
    }}

    public static void main(String[] args) {{
        SpringApplication.run(Application.class, args);
    }}

    @Override
    public void run(String... args) throws Exception {{
        {body}
    }}

    static void result(String json) throws Exception {{
        Files.writeString(Path.of(System.getenv("UOM_RESULT_FILE")), json);
    }}
}}
{rest}
"""


def as_project(source: str, *, framework: str) -> Files:
    """The same program as a project of Maven's layout."""
    return {"pom.xml": pom(framework), "src/main/java/shop/Application.java": source}


QUERIES = {
    MONGODB: application(
        'System.out.println(context.getBean(Orders.class).findByCustomer(7).size()); result("{}");',
        imports="import org.springframework.data.mongodb.repository.MongoRepository;",
        rest="""
class Order { @org.springframework.data.annotation.Id String id; int customer; }
interface Orders extends MongoRepository<Order, String> { List<Order> findByCustomer(int customer); }
""",
    ),
    NEO4J: application(
        'System.out.println(context.getBean(Orders.class).findByCustomer(7).size()); result("{}");',
        imports="import org.springframework.data.neo4j.core.schema.*;\n"
        "import org.springframework.data.neo4j.repository.Neo4jRepository;",
        rest="""
@Node class Order { @Id @GeneratedValue String id; int customer; }
interface Orders extends Neo4jRepository<Order, String> { List<Order> findByCustomer(int customer); }
""",
    ),
}
"""A program of each framework that asks its database one question."""

BROKEN = """package shop;

import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.repository.CrudRepositry;

@SpringBootApplication
public class Application {
\tpublic static void main(String[] args) {
\t\tList<String> names = List.of("[ERROR] Fake.java:[1,1] cannot find symbol");
\t\tint count = names.lenght();
        String text = 7;
\t\tpay(text);
    }

    static void pay(int order, String customer) {}
}
"""
