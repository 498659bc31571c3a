# The emulator as a container: docker build -t emulator . && docker run -p 127.0.0.1:4000:4000 emulator
FROM node:22-alpine AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:22-alpine
WORKDIR /emulator
# The emulator needs nothing but Node, so no dependency is installed here.
COPY --from=build /build/package.json ./
COPY --from=build /build/dist ./dist
USER node
EXPOSE 4000
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["node", "-e", "fetch('http://127.0.0.1:4000/_emulator/users').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# A container has no other way in than its own address, so --allow-remote is needed; publish the port on 127.0.0.1 only.
ENTRYPOINT ["node", "dist/cli.js", "emulator", "--host", "0.0.0.0", "--allow-remote", "--port", "4000"]
