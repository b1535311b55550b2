# The vault as a container: the files of the published package and the production dependencies of the lock file.
#
#   docker build --tag strongroom .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges --ulimit core=0 \
#     --publish 127.0.0.1:8080:8080 --env STRONGROOM_TLS=off --volume strongroom:/var/lib/strongroom strongroom
#
# docs/operate.md explains the rest. A tag can be moved, so the base is locked by the digest of its index, which names the
# image of each platform. It is Node 26.10.0 on Debian 13, of October 2026. `docker buildx imagetools inspect` shows the
# digest of a later one.
FROM node:26.10.0-trixie-slim@sha256:930557a230abacbc3f4fd9b8648abf8f4bee1e17cb72195dcdfb2f709bc85b33 AS base

FROM base AS package
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . ./
RUN npm pack && tar -xzf strongroom-*.tgz

FROM base AS dependencies
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# The optional packages are Node itself, which the base has, and what the driver of PostgreSQL needs at Cloudflare.
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM base
# What only installs packages is not needed to run one.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack && \
    install -d -m 0700 -o 10001 -g 10001 /var/lib/strongroom
WORKDIR /usr/local/lib/node_modules/strongroom
COPY --from=package /build/package ./
COPY --from=dependencies /build/node_modules ./node_modules
RUN ln -s ../lib/node_modules/strongroom/bin/strongroom.js /usr/local/bin/strongroom

# Beyond loopback the vault asks for STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY, or for STRONGROOM_TLS=off.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=1 \
    UV_USE_IO_URING=0 \
    STRONGROOM_HOST=0.0.0.0 \
    STRONGROOM_METRICS_ADDRESS=0.0.0.0:9464 \
    STRONGROOM_DATA_DIR=/var/lib/strongroom

USER 10001:10001
VOLUME ["/var/lib/strongroom"]
# Metrics, on 9464, need no key: they are for the network of the containers, so that port is not published.
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "/usr/local/lib/node_modules/strongroom/bin/healthcheck.js"]
ENTRYPOINT ["node", "--disable-sigusr1", "--max-semi-space-size=32", "/usr/local/lib/node_modules/strongroom/bin/strongroom.js"]
CMD ["serve"]
