"""What must be found in each recording: severity, ``path:line:column``, code, beginning of the text.

A key is tool and program; one with a version speaks of that version's recording only.
"""

from __future__ import annotations

from sandbox.models import Severity

Found = tuple[Severity, str, str | None, str]

ERROR = Severity.ERROR
WARNING = Severity.WARNING

EXPECTED: dict[str, list[Found]] = {
    "csc-errors": [
        (WARNING, "Orders/Order.cs:5:10", "CS1030", "#warning: 'Program.cs(1,1): error CS0001: not real'"),
        (ERROR, "Program.cs:12:16", "CS0161", "'Customer.Total()': not all code paths return a valu"),
        (WARNING, "Program.cs:11:19", "CS8618", "Non-nullable property 'Name' must contain a non-null"),
        (WARNING, "Orders/Order.cs:8:31", "CS0618", "'Order.Pay()' is obsolete: 'use Settle'"),
        (ERROR, "Orders/Order.cs:8:38", "CS0103", "The name 'Settle' does not exist in the current cont"),
        (ERROR, "Program.cs:3:19", "CS0103", "The name 'total' does not exist in the current conte"),
        (ERROR, "Program.cs:4:13", "CS0029", "Cannot implicitly convert type 'string' to 'int'"),
        (ERROR, "Program.cs:6:1", "CS0246", "The type or namespace name 'Order' could not be foun"),
        (WARNING, "Program.cs:5:5", "CS0219", "The variable 'unused' is assigned but its value is n"),
    ],
    "csc-no-main": [
        (ERROR, "-:-:-", "CS5001", "Program does not contain a static 'Main' method suit"),
    ],
    "csc-syntax": [
        (ERROR, "Program.cs:1:25", "CS1002", "; expected"),
        (ERROR, "Program.cs:4:29", "CS1513", "} expected"),
    ],
    "csc-warnings": [
        (WARNING, "Program.cs:3:19", "CS8602", "Dereference of a possibly null reference."),
        (WARNING, "Program.cs:2:5", "CS0168", "The variable 'unused' is declared but never used"),
    ],
    "dotnet-async": [
        (ERROR, "Program.cs:6:-", "System.InvalidOperationException", "System.InvalidOperationException: one"),
    ],
    "dotnet-disk-full": [
        (ERROR, "Program.cs:6:-", "disk-full", "System.IO.IOException: No space left on device : '/d"),
    ],
    "dotnet-ef-down": [
        (ERROR, "Program.cs:9:-", "database-unreachable", "PostgreSQL at 127.0.0.1:1 did not answer: Connection"),
    ],
    "dotnet-ef-no-key": [
        (
            ERROR,
            "Program.cs:4:-",
            "System.InvalidOperationException",
            "System.InvalidOperationException: The entity type 'O",
        ),
    ],
    "dotnet-ef-no-provider": [
        (
            ERROR,
            "Program.cs:13:-",
            "System.InvalidOperationException",
            "System.InvalidOperationException: No database provid",
        ),
    ],
    "dotnet-ef-no-table": [
        (
            ERROR,
            "Program.cs:4:-",
            "Microsoft.Data.Sqlite.SqliteException",
            "Microsoft.Data.Sqlite.SqliteException: SQLite Error ",
        ),
    ],
    "dotnet-ef-not-translated": [
        (
            ERROR,
            "Program.cs:5:-",
            "System.InvalidOperationException",
            "System.InvalidOperationException: The LINQ expressio",
        ),
    ],
    "dotnet-no-network": [
        (
            ERROR,
            "Program.cs:4:-",
            "System.Net.Http.HttpRequestException",
            "System.Net.Http.HttpRequestException: Resource tempo",
        ),
    ],
    "dotnet-npgsql-down": [
        (ERROR, "Program.cs:5:-", "database-unreachable", "PostgreSQL at 127.0.0.1:1 did not answer: Connection"),
    ],
    "dotnet-npgsql-down-logged": [
        (ERROR, "Program.cs:6:-", "database-unreachable", "PostgreSQL at 127.0.0.1:1 did not answer: Connection"),
    ],
    "dotnet-npgsql-down-silent": [
        (ERROR, "Program.cs:5:-", "database-unreachable", "PostgreSQL did not answer: The operation has timed o"),
    ],
    "dotnet-npgsql-down-unknown-host": [
        (ERROR, "Program.cs:5:-", "database-unreachable", "PostgreSQL did not answer: Name or service not known"),
    ],
    "dotnet-npgsql-survived": [
        (ERROR, "Program.cs:13:-", "System.FormatException", "System.FormatException: Failed to connect to 10.0.0."),
    ],
    "dotnet-npgsql-survived-logged": [
        (ERROR, "Program.cs:12:-", "System.FormatException", "System.FormatException: the orders in the file are n"),
    ],
    "dotnet-out-of-memory": [
        (ERROR, "-:-:-", "out-of-memory", "Out of memory."),
    ],
    "dotnet-sqlclient-down": [
        (ERROR, "Program.cs:5:-", "database-unreachable", "SQL Server did not answer: A network-related or inst"),
    ],
    "dotnet-sqlclient-down-silent": [
        (ERROR, "Program.cs:5:-", "database-unreachable", "SQL Server did not answer: Connection Timeout Expire"),
    ],
    "dotnet-sqlclient-down-unknown-host": [
        (ERROR, "Program.cs:5:-", "database-unreachable", "SQL Server did not answer: Name or service not known"),
    ],
    "dotnet-stack-overflow": [
        (ERROR, "-:-:-", "StackOverflow", "Stack overflow."),
    ],
    "dotnet-survived": [],
    "dotnet-uncaught": [
        (ERROR, "Program.cs:24:-", "Shop.OrderException", "Shop.OrderException: no orders"),
    ],
    "javac-missing-symbol": [
        (ERROR, "Main.java:6:43", "compiler.err.cant.resolve", "cannot find symbol"),
        (ERROR, "Main.java:7:33", "compiler.err.cant.resolve", "cannot find symbol"),
        (ERROR, "Main.java:8:9", "compiler.err.cant.resolve", "cannot find symbol"),
    ],
    "javac-missing-symbol-tool-options": [
        (ERROR, "Main.java:6:43", "compiler.err.cant.resolve", "cannot find symbol"),
        (ERROR, "Main.java:7:33", "compiler.err.cant.resolve", "cannot find symbol"),
        (ERROR, "Main.java:8:9", "compiler.err.cant.resolve", "cannot find symbol"),
    ],
    "javac-not-utf8": [
        (
            ERROR,
            "Main.java:2:21",
            "compiler.err.illegal.char.for.encoding",
            "unmappable character (0xFC) for encoding UTF-8",
        ),
    ],
    "javac-source-looks-like-output": [
        (ERROR, "Main.java:4:5", "compiler.err.not.stmt", "not a statement"),
        (ERROR, "Main.java:4:10", "compiler.err.expected", "';' expected"),
        (ERROR, "Main.java:4:32", "compiler.err.expected", "';' expected"),
        (ERROR, "Main.java:4:28", "compiler.err.variable.not.allowed", "variable declaration not allowed here"),
        (ERROR, "Main.java:5:11", "compiler.err.expected", "';' expected"),
    ],
    "javac-syntax": [
        (ERROR, "Main.java:3:16", "compiler.err.expected", "';' expected"),
        (ERROR, "Main.java:5:3", "compiler.err.premature.eof", "reached end of file while parsing"),
    ],
    "javac-types": [
        (ERROR, "com/acme/Main.java:4:19", "compiler.err.doesnt.exist", "package org.missing does not exist"),
        (
            ERROR,
            "com/acme/Main.java:6:8",
            "compiler.err.does.not.override.abstract",
            "Main is not abstract and does not override abstract ",
        ),
        (
            ERROR,
            "com/acme/Main.java:14:21",
            "compiler.err.prob.found.req",
            "incompatible types: String cannot be converted to in",
        ),
        (
            ERROR,
            "com/acme/Main.java:15:9",
            "compiler.err.cant.apply.symbol",
            "method pay in class Main cannot be applied to given ",
        ),
        (
            ERROR,
            "com/acme/Main.java:17:20",
            "compiler.err.prob.found.req",
            "incompatible types: int cannot be converted to Strin",
        ),
        (
            ERROR,
            "com/acme/Main.java:19:9",
            "compiler.err.cant.assign.val.to.var",
            "cannot assign a value to final variable fixed",
        ),
        (ERROR, "com/acme/Main.java:21:36", "compiler.err.cant.resolve", "cannot find symbol"),
        (
            ERROR,
            "com/acme/Main.java:22:9",
            "compiler.err.non-static.cant.be.ref",
            "non-static variable this cannot be referenced from a",
        ),
        (ERROR, "com/acme/Main.java:22:13", "compiler.err.cant.resolve", "cannot find symbol"),
    ],
    "javac-25.0.3-warnings": [
        (WARNING, "Main.java:12:16", "unchecked", "unchecked call to add(E) as a member of the raw type"),
        (WARNING, "Main.java:13:29", "deprecation", "getId() in Thread has been deprecated"),
        (WARNING, "Main.java:19:13", "removal", "Old in Main has been deprecated and marked for remov"),
    ],
    "javac-warnings": [
        (WARNING, "Main.java:12:16", "unchecked", "unchecked call to add(E) as a member of the raw type"),
        (WARNING, "Main.java:19:13", "removal", "Old in Main has been deprecated and marked for remov"),
    ],
    "javac-wrong-file-name": [
        (
            ERROR,
            "Main.java:1:8",
            "compiler.err.class.public.should.be.in.file",
            "class Program is public, should be declared in a fil",
        ),
    ],
    "jvm-disk-full": [
        (ERROR, "Main.java:7:-", "disk-full", "java.io.IOException: No space left on device"),
    ],
    "jvm-no-main": [
        (ERROR, "-:-:-", "launcher", "Main method not found in class Main, please define t"),
    ],
    "jvm-no-network": [
        (ERROR, "Main.java:9:-", "java.net.ConnectException", "java.net.ConnectException"),
    ],
    "jvm-no-network-socket": [
        (ERROR, "Main.java:5:-", "java.net.SocketException", "java.net.SocketException: Network is unreachable"),
    ],
    "jvm-out-of-memory": [
        (ERROR, "Main.java:7:-", "out-of-memory", "java.lang.OutOfMemoryError: Java heap space"),
    ],
    "jvm-stack-overflow": [
        (ERROR, "Main.java:3:-", "java.lang.StackOverflowError", "java.lang.StackOverflowError"),
    ],
    "jvm-static-initializer": [
        (ERROR, "Main.java:2:-", "java.lang.ExceptionInInitializerError", "java.lang.ExceptionInInitializerError"),
    ],
    "jvm-survived": [],
    "jvm-thread": [
        (
            ERROR,
            "Main.java:3:-",
            "java.lang.NullPointerException",
            'java.lang.NullPointerException: Cannot invoke "Objec',
        ),
        (ERROR, "Main.java:6:-", "java.io.IOException", "java.io.IOException: disk"),
    ],
    "jvm-uncaught": [
        (ERROR, "com/acme/Main.java:21:-", "com.acme.Main$OrderException", "com.acme.Main$OrderException: no orders"),
    ],
    "maven-errors": [
        (ERROR, "src/main/java/shop/Application.java:6:45", "compiler.err.cant.resolve", "cannot find symbol"),
        (ERROR, "src/main/java/shop/Order.java:4:5", "compiler.err.cant.resolve", "cannot find symbol"),
        (ERROR, "src/main/java/shop/Application.java:12:20", "compiler.err.cant.resolve", "cannot find symbol"),
        (
            ERROR,
            "src/main/java/shop/Application.java:13:23",
            "compiler.err.prob.found.req",
            "incompatible types: int cannot be converted to java.",
        ),
        (
            ERROR,
            "src/main/java/shop/Application.java:14:3",
            "compiler.err.cant.apply.symbol",
            "method pay in class shop.Application cannot be appli",
        ),
        (
            ERROR,
            "src/main/java/shop/Order.java:5:54",
            "compiler.err.cant.apply.symbols",
            "no suitable method found for toArray(int,int)",
        ),
    ],
    "maven-malformed": [
        (ERROR, "pom.xml:5:56", "project", "Non-parseable POM: end tag name </artefactId> must b"),
    ],
    "maven-missing-artifact": [
        (ERROR, "pom.xml:22:-", "offline", "org.postgresql:postgresql:42.7.14 is not in the snap"),
        (ERROR, "pom.xml:26:-", "offline", "com.example:no-such-library:1.0 is not in the snapsh"),
    ],
    "maven-no-version": [
        (ERROR, "pom.xml:20:17", "project", "'dependencies.dependency.version' for com.example:li"),
    ],
    "maven-old-parent": [
        (ERROR, "pom.xml:3:11", "offline", "org.springframework.boot:spring-boot-starter-parent:"),
    ],
    "maven-old-parent-no-network": [
        (ERROR, "pom.xml:3:11", "transfer", "org.springframework.boot:spring-boot-starter-parent:"),
    ],
    "maven-warnings": [
        (
            WARNING,
            "src/main/java/shop/Application.java:11:35",
            "deprecation",
            "getId() in java.lang.Thread has been deprecated",
        ),
    ],
    "msbuild-errors": [
        (ERROR, "Program.cs:2:19", "CS0103", "The name 'totl' does not exist in the current contex"),
        (WARNING, "Program.cs:3:15", "CS8600", "Converting null literal or possible null value to no"),
        (WARNING, "Program.cs:1:5", "CS0219", "The variable 'total' is assigned but its value is ne"),
        (WARNING, "Program.cs:3:8", "CS0219", "The variable 'name' is assigned but its value is nev"),
    ],
    "msbuild-errors-terminal": [
        (ERROR, "Program.cs:2:19", "CS0103", "The name 'totl' does not exist in the current contex"),
        (WARNING, "Program.cs:3:15", "CS8600", "Converting null literal or possible null value to no"),
        (WARNING, "Program.cs:1:5", "CS0219", "The variable 'total' is assigned but its value is ne"),
        (WARNING, "Program.cs:3:8", "CS0219", "The variable 'name' is assigned but its value is nev"),
    ],
    "msbuild-missing-package": [
        (ERROR, "app.csproj:8:-", "NU1101", "No.Such.Package is not in the snapshot, and the sand"),
    ],
    "msbuild-missing-package-terminal": [
        (ERROR, "app.csproj:8:-", "NU1101", "No.Such.Package is not in the snapshot, and the sand"),
    ],
    "msbuild-missing-version": [
        (WARNING, "app.csproj:8:-", "NU1603", "app depends on Newtonsoft.Json (>= 13.0.1) but Newto"),
        (ERROR, "app.csproj:7:-", "NU1102", "Dapper >= 99.0.0 is not in the snapshot, and the san"),
    ],
    "msbuild-no-index": [
        (ERROR, "app.csproj:-:-", "NU1301", "Unable to load the service index for source https://"),
    ],
    "msbuild-no-project": [
        (ERROR, "-:-:-", "MSB1003", "Specify a project or solution file. The current work"),
    ],
    "msbuild-no-project-terminal": [
        (ERROR, "-:-:-", "MSB1003", "Specify a project or solution file. The current work"),
    ],
    "python-chained": [
        (ERROR, "main.py:11:-", "OrderError", "OrderError: no order 2"),
    ],
    "python-3.13.0-disk-full": [
        (ERROR, "main.py:3:9", "disk-full", "OSError: [Errno 28] No space left on device"),
    ],
    "python-disk-full": [
        (ERROR, "main.py:3:-", "disk-full", "OSError: [Errno 28] No space left on device"),
    ],
    "python-group": [
        (ERROR, "main.py:2:-", "ExceptionGroup", "ExceptionGroup: two queries failed (2 sub-exceptions"),
    ],
    "python-imported-syntax": [
        (ERROR, "broken.py:2:12", "SyntaxError", "SyntaxError: '[' was never closed"),
    ],
    "python-3.13.0-library": [
        (ERROR, "main.py:4:1", "json.decoder.JSONDecodeError", "json.decoder.JSONDecodeError: Illegal trailing comma"),
    ],
    "python-library": [
        (ERROR, "main.py:4:-", "json.decoder.JSONDecodeError", "json.decoder.JSONDecodeError: Expecting property nam"),
    ],
    "python-missing-module": [
        (ERROR, "main.py:1:-", "ModuleNotFoundError", "ModuleNotFoundError: No module named 'pandas_of_old'"),
    ],
    "python-no-network": [
        (ERROR, "main.py:3:6", "urllib.error.URLError", "urllib.error.URLError: <urlopen error [Errno -3] Tem"),
    ],
    "python-recursion": [
        (ERROR, "main.py:2:12", "RecursionError", "RecursionError: maximum recursion depth exceeded"),
    ],
    "python-survived": [
        (ERROR, "main.py:12:-", "LookupError", "LookupError: the real one"),
    ],
    "python-syntax": [
        (ERROR, "main.py:1:10", "SyntaxError", "SyntaxError: '(' was never closed"),
        (ERROR, "shop/orders.py:3:-", "TabError", "TabError: inconsistent use of tabs and spaces in ind"),
        (ERROR, "shop/text.py:1:20", "SyntaxError", "SyntaxError: unterminated string literal (detected a"),
    ],
    "python-thread": [
        (ERROR, "main.py:6:-", "RuntimeError", "RuntimeError: worker died"),
    ],
    "python-uncaught": [
        (ERROR, "shop/orders.py:2:32", "KeyError", "KeyError: 'quantity'"),
    ],
    "spring-bean-fails": [
        (
            ERROR,
            "Application.java:20:-",
            "java.lang.NumberFormatException",
            'java.lang.NumberFormatException: For input string: "',
        ),
    ],
    "spring-default-package": [
        (ERROR, "Application.java:7:-", "default-package", "the application lies in the default package, so that"),
    ],
    "spring-driver-down": [
        (ERROR, "-:-:-", "database-unreachable", "MongoDB at 127.0.0.1:1 did not answer: Connection re"),
    ],
    "spring-missing-bean": [
        (ERROR, "Application.java:10:-", "start-up", "Parameter 0 of constructor in shop.Application requi"),
    ],
    "spring-mongodb-down": [
        (
            ERROR,
            "Application.java:22:-",
            "database-unreachable",
            "MongoDB at 127.0.0.1:1 did not answer: Connection re",
        ),
    ],
    "spring-mongodb-down-several": [
        (
            ERROR,
            "Application.java:22:-",
            "database-unreachable",
            "MongoDB at 127.0.0.1:1, 127.0.0.1:2 did not answer: ",
        ),
    ],
    "spring-mongodb-down-unknown-host": [
        (
            ERROR,
            "Application.java:22:-",
            "database-unreachable",
            "MongoDB at db.invalid:27017 did not answer: unknown ",
        ),
    ],
    "spring-neo4j-down": [
        (
            ERROR,
            "Application.java:22:-",
            "database-unreachable",
            "Neo4j at 127.0.0.1:1 did not answer: Connection refu",
        ),
    ],
    "spring-neo4j-down-routed": [
        (
            ERROR,
            "Application.java:22:-",
            "database-unreachable",
            "Neo4j at 127.0.0.1:1 did not answer: Connection refu",
        ),
    ],
    "spring-neo4j-down-unknown-host": [
        (
            ERROR,
            "Application.java:22:-",
            "database-unreachable",
            "Neo4j at db.invalid:7687 did not answer: unknown hos",
        ),
    ],
    "spring-survived": [],
    "spring-throws": [
        (ERROR, "Application.java:19:-", "java.lang.IllegalStateException", "java.lang.IllegalStateException: no name"),
    ],
    "spring-wrong-query": [
        (
            ERROR,
            "Application.java:24:-",
            "org.springframework.data.repository.query.QueryCreationException",
            "org.springframework.data.repository.query.QueryCreat",
        ),
    ],
}
