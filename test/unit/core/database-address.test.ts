import { describe, expect, it } from "vitest";
import { databaseAddressProblem, databasePasswords } from "../../../src/core/database-address.ts";

describe("the address of a database", () => {
  it.each([
    ["one host", "postgresql://u:p@h/d?sslmode=verify-full"],
    ["an IPv6 address", "postgres://u@[::1]:1/d"],
    ["a socket in a parameter", "postgresql://u@localhost:5432/d?host=%2Ftmp%2Fa"],
    ["a socket in the place of the host", "postgresql://u:p@%2Ftmp%2Fa/d"],
    ["no host", "postgresql:///d?host=/tmp/a"],
    ["a comma in its password", "postgresql://u:a,b@h/d"],
  ])("a database address with %s is accepted", (_, address) => {
    expect(databaseAddressProblem(address)).toBeUndefined();
  });

  it.each([
    ["mysql://u@h/d", "must be the address of a PostgreSQL server"],
    ["postgresql://u@h:x/d", "must be the address of a PostgreSQL server"],
    ["postgresql://u@[/d", "must be the address of a PostgreSQL server"],
    ["postgresql://u@h1:5432,h2/d", "must name one host: put HAProxy"],
    ["postgresql://u@/d?host=h1,h2", "must name one host: put HAProxy"],
  ])("the database address %s is refused with what to write", (address, message) => {
    expect(databaseAddressProblem(address)).toContain(message);
  });

  it("finds the password in every form, so that no log shows it", () => {
    expect(databasePasswords("postgresql://u:a%40b@h1:1/d")).toEqual(
      expect.arrayContaining(["a%40b", "a@b"]),
    );
    expect(databasePasswords("postgresql://h/d?user=u&password=a%40b")).toContain("a@b");
  });
});
