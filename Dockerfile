# One image for the API, the workers, the migration and the operator's commands; only the command differs.
# `npm run images:pin` writes digests behind the versions. The Node is the one of the tests, in package.json.
FROM node:24.21.0-bookworm-slim AS modules
WORKDIR /serpmill
COPY package.json package-lock.json ./
# Installs only what runs in production, and runs no install scripts of packages. Packages declare compilers and types as optional.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund
# The software bill of materials has what was installed. With the tools in package.json npm would report them as missing.
RUN npm pkg delete devDependencies && npm sbom --sbom-format=cyclonedx > sbom.cdx.json
# Half of what packages bring is for compilers and debuggers, and Node reads none of it.
RUN find node_modules -type f '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.?ts' ')' -delete && chmod -R a+rX,go-w .

FROM debian:bookworm-20260918-slim AS source
WORKDIR /app
COPY package.json ./
COPY api api
COPY worker worker
COPY commands commands
COPY shared shared
# Copies keep the file modes of the checkout. A checkout made under a strict umask must still be readable for user 10001.
RUN chmod -R a+rX,go-w .

# Not Node's own image, whose npm, yarn and headers would stay in a layer below; and not distroless, which has no versions to name.
FROM debian:bookworm-20260918-slim
RUN groupadd --gid 10001 serpmill \
 && useradd --uid 10001 --gid serpmill --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin serpmill
COPY --from=modules /usr/local/bin/node /usr/local/bin/
# Fails if this base has not the libraries that Node is linked with.
RUN ["node", "--version"]
WORKDIR /app
COPY --from=modules /serpmill/node_modules node_modules/
COPY --from=modules /serpmill/sbom.cdx.json ./
COPY --from=source /app ./
ENV NODE_ENV=production HOST=0.0.0.0
# In a container of 512 MB Node would leave young objects 1 MB, and spend half of its CPU on copying what searches under way hold.
# A helper thread for each core but one, instead of four: on few cores they delay searches during a garbage collection.
ENV NODE_OPTIONS="--max-semi-space-size=32 --v8-pool-size=0"
# Freed buffers of 1 MB go back to the system. By default glibc raises this threshold with each large one, and keeps them.
ENV MALLOC_MMAP_THRESHOLD_=1048576
# Look-ups of names get half of these threads, by default two. One whose name server is silent takes 10 s, and providers may have several.
ENV UV_THREADPOOL_SIZE=12
# Compiled code and the table of cities, so that a process starts with half of the CPU and up to 25 MB less. Node reads only what the
# same user has compiled. Without settings a program loads its code, says what is missing, and ends with 1.
ENV NODE_COMPILE_CACHE=/app/compiled
RUN mkdir compiled && chown serpmill compiled \
 && setpriv --reuid=serpmill --regid=serpmill --clear-groups sh -c '! node api/main.ts && ! node worker/main.ts \
 && ! node shared/database/migrate.ts && node commands/main.ts --help \
 && node -e "import(\"./shared/gazetteer/gazetteer.ts\").then(({ loadGazetteer }) => loadGazetteer())"' \
 && chown -R root:root compiled && chmod -R a+rX,go-w compiled
# A number, so that an orchestrator can see that it is not root. Nothing is written: run with --read-only.
USER 10001:10001
# The container is alive if the API or the worker answers on its ops port. Readiness is for load balancers: an unreachable
# Redis is no reason to replace a container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "-e", "\
  const ports = [process.env.API_OPS_PORT || 3001, process.env.WORKER_OPS_PORT || 3002]; \
  const alive = async (port) => { if (!(await fetch('http://127.0.0.1:' + port + '/livez')).ok) throw new Error(); }; \
  Promise.any(ports.map(alive)).then(() => process.exit(0), () => process.exit(1));"]
# Node itself, not npm, which does not pass signals on.
CMD ["node", "api/main.ts"]
