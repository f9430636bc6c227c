using NHibernate.Cfg;
using NHibernate.Dialect;
using NHibernate.Linq;
using NHibernate.Mapping.ByCode;
using NHibernate.Mapping.ByCode.Conformist;
using NHibernate.Tool.hbm2ddl;

// Does a little of everything, so that the libraries it loads are those that programs load.
var configuration = new Configuration();
configuration.DataBaseIntegration(database =>
{
    database.ConnectionString = "Data Source=training.db";
    database.Driver<Uom.SqliteDriver>();
    database.Dialect<SQLiteDialect>();
    database.KeywordsAutoImport = Hbm2DDLKeyWords.None;
});
var mapper = new ModelMapper();
mapper.AddMapping<CustomerMapping>();
mapper.AddMapping<OrderMapping>();
configuration.AddMapping(mapper.CompileMappingForAllExplicitlyAddedEntities());
new SchemaExport(configuration).Create(false, true);
using var factory = configuration.BuildSessionFactory();
using (var session = factory.OpenSession())
using (var transaction = session.BeginTransaction())
{
    var customer = new Customer { Name = "žluťoučký 日本語 😀" };
    session.Save(customer);
    session.Save(new Order { Customer = customer, Total = 12.5m, Placed = new DateTime(2024, 2, 29) });
    transaction.Commit();
}
using (var session = factory.OpenSession())
{
    var order = session.Query<Order>().Fetch(order => order.Customer).Single(order => order.Total > 10);
    var count = session.CreateQuery("select count(*) from Order").UniqueResult<long>();
    Console.WriteLine(count == 1 ? order.Customer!.Name : $"{count} orders");
}
File.WriteAllLines(
    System.Environment.GetEnvironmentVariable("UOM_RESULT_FILE") ?? "loaded",
    AppDomain.CurrentDomain.GetAssemblies().Where(assembly => !assembly.IsDynamic).Select(assembly => assembly.Location));

public class Customer
{
    public virtual int Id { get; set; }
    public virtual string Name { get; set; } = "";
}

public class Order
{
    public virtual int Id { get; set; }
    public virtual decimal Total { get; set; }
    public virtual DateTime Placed { get; set; }
    public virtual Customer? Customer { get; set; }
}

public class CustomerMapping : ClassMapping<Customer>
{
    public CustomerMapping()
    {
        Table("customer");
        Id(customer => customer.Id, id => id.Generator(Generators.Native));
        Property(customer => customer.Name);
    }
}

public class OrderMapping : ClassMapping<Order>
{
    public OrderMapping()
    {
        Table("customer_order");
        Id(order => order.Id, id => id.Generator(Generators.Native));
        Property(order => order.Total);
        Property(order => order.Placed);
        ManyToOne(order => order.Customer, customer => customer.Column("customer_id"));
    }
}
