// The middleware that most teams write: fastify, ioredis, a hook in front of the handler. It runs in the handler's own
// process, so its numbers hold the handler as well and no proxy.
import Fastify from 'fastify';
import { Redis } from 'ioredis';

const [port, redisPort] = process.argv.slice(2).map(Number);
const redis = new Redis(redisPort, '127.0.0.1');
const app = Fastify({ bodyLimit: 8 * 1024 * 1024 });

app.addHook('preHandler', async (request, reply) => {
  const first = await redis.set(`node:${request.body.id}`, '1', 'EX', 604800, 'NX');
  if (first === null) {
    return reply.send({ received: true, duplicate: true });
  }
});
app.post('/*', async () => ({ received: true }));

await app.listen({ host: '127.0.0.1', port });
