# One image for the API, the workers, the migration and the operator's commands; only the command differs.
FROM node:24-bookworm-slim AS modules
WORKDIR /app
COPY package.json package-lock.json ./
# Installs only what runs in production, and runs no install scripts of packages.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && chmod -R a+rX,go-w .

FROM node:24-bookworm-slim AS source
WORKDIR /app
COPY package.json ./
COPY api api
COPY worker worker
COPY shared shared
# Copies keep the file modes of the checkout. A checkout made under a strict umask must still be readable for user 10001.
RUN chmod -R a+rX,go-w .

FROM node:24-bookworm-slim
RUN groupadd --gid 10001 serpmill \
 && useradd --uid 10001 --gid serpmill --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin serpmill
WORKDIR /app
COPY --from=modules /app/node_modules node_modules/
COPY --from=source /app ./
# Only /tmp is written to, and only to cache compiled code: run with --read-only --tmpfs /tmp.
ENV NODE_ENV=production NODE_COMPILE_CACHE=/tmp/node-compile-cache HOST=0.0.0.0
# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
# The container is alive if the API or the worker answers on its ops port. Readiness is for load balancers: an unreachable
# Redis is no reason to replace a container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "-e", "\
  const ports = [process.env.API_OPS_PORT || 3001, process.env.WORKER_OPS_PORT || 3002]; \
  const alive = async (port) => { if (!(await fetch('http://127.0.0.1:' + port + '/livez')).ok) throw new Error(); }; \
  Promise.any(ports.map(alive)).then(() => process.exit(0), () => process.exit(1));"]
# Node itself, not npm, which does not pass signals on.
CMD ["node", "api/main.ts"]
