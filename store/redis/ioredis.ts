/* What the hub uses of ioredis. `import()` of this file loads the package; in a bundle, that of the package names nothing. */
export { AbstractConnector, Cluster, Redis } from 'ioredis'
