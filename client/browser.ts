/** The library as browsers load it. */
export { EventRefused, type Remark } from './refusal.ts'
