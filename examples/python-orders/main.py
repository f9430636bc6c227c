"""Asks a small order database six questions and writes count, first and last row of each answer."""

import json
import os
import sqlite3
from pathlib import Path

SCHEMA = """
create table customers (id integer primary key, name text not null, city text, joined text not null);
create table orders (
    id integer primary key,
    customer_id integer not null references customers,
    placed text not null,
    shipped text,
    note text
);
create table lines (
    order_id integer not null references orders,
    product text not null,
    quantity integer not null,
    cents integer not null
);
"""

CUSTOMERS = [
    (1, "Anna Nováková", "Brno", "2023-01-15"),
    (2, "李小龙", "上海", "2023-03-01"),
    (3, "Ελένη Παπαδοπούλου", None, "2023-06-30"),
    (4, "O'Brien & Sons", "Cork", "2023-12-31"),
    (5, "Мария Иванова", "Brno", "2024-02-29"),
    (6, '😀 Smile "Ltd"', None, "2024-03-01"),
]
ORDERS = [
    (101, 1, "2024-01-10", "2024-01-12", "first order"),
    (102, 2, "2024-01-31", "2024-02-02", None),
    (103, 1, "2024-02-29", None, "příště rychleji"),
    (104, 3, "2024-02-29", "2024-03-04", ""),
    (105, 4, "2024-03-15", None, None),
    (106, 5, "2024-03-31", "2024-04-01", "до двери"),
    (107, 2, "2024-12-31", None, "跨年"),
]
LINES = [
    (101, "Keyboard", 1, 4990),
    (101, "Mouse", 2, 1995),
    (102, "Monitor", 2, 18900),
    (102, "Cable", 5, 349),
    (103, "Mouse", 1, 1995),
    (103, "Tea 茶", 10, 99),
    (104, "Keyboard", 3, 4491),
    (105, "Cable", 100, 299),
    (105, "Monitor", 1, 19999),
    (106, "Tea 茶", 1, 105),
    (107, "Monitor", 4, 17525),
    (107, "Keyboard", 1, 4990),
]

QUERIES = {
    # A left join keeps customers without orders.
    "ordersByCustomer": """
        select c.id as customerId, c.name, count(o.id) as orders, max(o.placed) as lastPlaced
        from customers c left join orders o on o.customer_id = c.id
        group by c.id, c.name order by c.id
    """,
    # Customers without a city are a group of their own, and the first one.
    "revenueByCity": """
        select c.city, sum(l.quantity * l.cents) as revenue
        from customers c join orders o on o.customer_id = c.id join lines l on l.order_id = o.id
        group by c.city order by c.city nulls first
    """,
    "revenueByMonth": """
        select substr(o.placed, 1, 7) as month, count(distinct o.id) as orders, sum(l.quantity * l.cents) as revenue
        from orders o join lines l on l.order_id = o.id
        group by month order by month
    """,
    "openOrders": """
        select o.id as orderId, c.name as customer, o.placed, o.note
        from orders o join customers c on c.id = o.customer_id
        where o.shipped is null order by o.placed desc
    """,
    "customersWithoutOrders": """
        select c.id as customerId, c.name, c.city, c.joined from customers c
        where not exists (select 1 from orders o where o.customer_id = c.id) order by c.id
    """,
    "productsInSeveralOrders": """
        select product, count(distinct order_id) as orders, sum(quantity) as quantity, min(cents) as lowestPrice
        from lines group by product having count(distinct order_id) > 1 order by quantity desc, product
    """,
}
MONEY = {"revenue", "lowestPrice"}


def shown(row):
    """Money is kept in cents and shown with two decimals, as text, so that no digit depends on floating point."""
    return {
        key: f"{row[key] // 100}.{row[key] % 100:02d}" if key in MONEY else row[key]
        for key in row.keys()  # noqa: SIM118 - a row of sqlite3 iterates over its values
    }


def main():
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.executescript(SCHEMA)
    database.executemany("insert into customers values (?, ?, ?, ?)", CUSTOMERS)
    database.executemany("insert into orders values (?, ?, ?, ?, ?)", ORDERS)
    database.executemany("insert into lines values (?, ?, ?, ?)", LINES)

    answers = {}
    for name, query in QUERIES.items():
        rows = database.execute(query).fetchall()
        answers[name] = {"count": len(rows), "firstSample": shown(rows[0]), "lastSample": shown(rows[-1])}
        print(f"{name}: {len(rows)} rows")
    database.close()
    Path(os.environ["UOM_RESULT_FILE"]).write_text(json.dumps(answers, ensure_ascii=False, indent=2), encoding="utf-8")


main()
