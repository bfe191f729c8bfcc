import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Base64;
import java.util.Map;

import com.google.gson.Gson;
import org.janelia.saalfeldlab.n5.Bzip2Compression;
import org.janelia.saalfeldlab.n5.Compression;
import org.janelia.saalfeldlab.n5.DataBlock;
import org.janelia.saalfeldlab.n5.DataType;
import org.janelia.saalfeldlab.n5.DatasetAttributes;
import org.janelia.saalfeldlab.n5.GzipCompression;
import org.janelia.saalfeldlab.n5.Lz4Compression;
import org.janelia.saalfeldlab.n5.N5FSWriter;
import org.janelia.saalfeldlab.n5.RawCompression;
import org.janelia.saalfeldlab.n5.XzCompression;

/** Writes what generate_n5.py says into a container: WriteN5 CONTAINER PLAN, where PLAN is a file of nodes in JSON. */
public class WriteN5 {

    static class Node {
        String path;
        Map<String, Object> attributes;
        /** Null for a group. */
        String dataType;
        String compression;
        long[] dimensions;
        int[] blockSize;
        Block[] blocks;
    }

    static class Block {
        long[] position;
        int[] size;
        /** The elements in big-endian order, in Base64. */
        String elements;
    }

    public static void main(String[] arguments) throws Exception {
        Node[] nodes = new Gson().fromJson(Files.readString(Paths.get(arguments[1])), Node[].class);
        N5FSWriter writer = new N5FSWriter(arguments[0]);
        for (Node node : nodes) {
            if (node.dataType == null)
                writer.createGroup(node.path);
            else
                write(writer, node);
            for (Map.Entry<String, Object> attribute : node.attributes.entrySet())
                writer.setAttribute(node.path, attribute.getKey(), attribute.getValue());
        }
        writer.close();
    }

    static void write(N5FSWriter writer, Node node) {
        DataType type = DataType.fromString(node.dataType);
        Compression compression = compression(node.compression);
        DatasetAttributes dataset = writer.createDataset(node.path, node.dimensions, node.blockSize, type, compression);
        for (Block block : node.blocks) {
            DataBlock<?> made = type.createDataBlock(block.size, block.position);
            fill(made.getData(), ByteBuffer.wrap(Base64.getDecoder().decode(block.elements)));
            writer.writeBlock(node.path, dataset, made);
        }
    }

    static void fill(Object numbers, ByteBuffer bytes) {
        if (numbers instanceof byte[])
            bytes.get((byte[]) numbers);
        else if (numbers instanceof short[])
            bytes.asShortBuffer().get((short[]) numbers);
        else if (numbers instanceof int[])
            bytes.asIntBuffer().get((int[]) numbers);
        else if (numbers instanceof long[])
            bytes.asLongBuffer().get((long[]) numbers);
        else if (numbers instanceof float[])
            bytes.asFloatBuffer().get((float[]) numbers);
        else
            bytes.asDoubleBuffer().get((double[]) numbers);
    }

    static Compression compression(String name) {
        switch (name) {
        case "raw":
            return new RawCompression();
        case "gzip":
            return new GzipCompression();
        case "zlib":
            return new GzipCompression(5, true);
        case "bzip2":
            return new Bzip2Compression();
        case "xz":
            return new XzCompression();
        case "lz4":
            return new Lz4Compression();
        default:
            throw new IllegalArgumentException(name);
        }
    }
}
