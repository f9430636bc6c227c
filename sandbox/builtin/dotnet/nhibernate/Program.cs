using NHibernate.Cfg;
using NHibernate.Dialect;
using NHibernate.Linq;
using NHibernate.Mapping.ByCode;
using NHibernate.Mapping.ByCode.Conformist;
using NHibernate.Tool.hbm2ddl;

// Does a little of everything, so that the libraries it loads are those that programs load.
var configuration = new Configuration()
    .SetProperty("connection.connection_string", "Data Source=training.db")
    .SetProperty("connection.driver_class", typeof(Uom.SqliteDriver).AssemblyQualifiedName)
    .SetProperty("dialect", typeof(SQLiteDialect).AssemblyQualifiedName)
    .SetProperty("hbm2ddl.keywords", "none");
var mapper = new ModelMapper();
mapper.AddMapping<CustomerMapping>();
mapper.AddMapping<PurchaseMapping>();
configuration.AddMapping(mapper.CompileMappingForAllExplicitlyAddedEntities());
new SchemaExport(configuration).Create(false, true);
using var factory = configuration.BuildSessionFactory();
using (var session = factory.OpenSession())
using (var transaction = session.BeginTransaction())
{
    var customer = new Customer { Name = "žluťoučký 日本語 😀" };
    session.Save(customer);
    session.Save(new Purchase { Customer = customer, Total = 12.5m, Placed = new DateTime(2024, 2, 29) });
    transaction.Commit();
}
using (var session = factory.OpenSession())
{
    var purchases = session.Query<Purchase>().Where(row => row.Id > 0).Fetch(row => row.Customer).ToList();
    Console.WriteLine(purchases.Single().Customer!.Name);
}
File.WriteAllLines(
    System.Environment.GetEnvironmentVariable("UOM_RESULT_FILE") ?? "loaded",
    AppDomain.CurrentDomain.GetAssemblies().Where(assembly => !assembly.IsDynamic).Select(assembly => assembly.Location));

public class Customer
{
    public virtual int Id { get; set; }
    public virtual string Name { get; set; } = "";
}

public class Purchase
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

public class PurchaseMapping : ClassMapping<Purchase>
{
    public PurchaseMapping()
    {
        Table("purchase");
        Id(purchase => purchase.Id, id => id.Generator(Generators.Native));
        Property(purchase => purchase.Total);
        Property(purchase => purchase.Placed);
        ManyToOne(purchase => purchase.Customer, customer => customer.Column("customer_id"));
    }
}
