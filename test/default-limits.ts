import { limitsOf, loadConfig } from '../config/config.ts'

const loaded = loadConfig({}, '/')
if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))

/** The limits of a node without settings. */
export const defaultLimits = limitsOf(loaded.config)
