import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** An empty server of MongoDB's protocol. Prints its address; ends with its standard input. */
class MongoServer {
    /** The newest version that the library names has the protocol's version 8, which drivers of today refuse. */
    private static final MongoVersion VERSION = new MongoVersion() {
        @Override
        public int getWireVersion() {
            return 13;
        }

        @Override
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }
    };

    public static void main(String[] args) throws Exception {
        var server = new de.bwaldvogel.mongo.MongoServer(new MemoryBackend().version(VERSION));
        var address = server.bind();
        System.out.println("mongodb://127.0.0.1:" + address.getPort());
        System.in.read();
        server.shutdownNow();
    }
}
