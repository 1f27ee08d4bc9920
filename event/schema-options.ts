/** What all checks of schemas have in common. */
export const schemaOptions = {
  strict: true,
  allowUnionTypes: true, // `type: [x, 'null']`, see schema.ts
  ownProperties: true, // `constructor` is not a field just because every object inherits it
  // Optimizing would double the compile time, and make no check faster.
  code: { optimize: false },
  // Tests check the schemas. To check them here would slow down each start by a tenth.
  validateSchema: false,
  meta: false,
} as const
