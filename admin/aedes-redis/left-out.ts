/** Thrown for a piece of data that is not imported. docs/deployment.md lists the values of `reason`. */
export class LeftOut extends Error {
  constructor(
    readonly reason: string,
    why: string,
  ) {
    super(why)
  }
}
