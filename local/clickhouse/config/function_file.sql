CREATE FUNCTION file AS path -> toString(throwIf(true, 'no query reads files here'))
