/** Thrown for a piece of data that stays out; `reason` is one of docs/deployment.md. */
export class LeftOut extends Error {
  constructor(
    readonly reason: string,
    why: string,
  ) {
    super(why)
  }
}
