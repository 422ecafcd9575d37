import { describe, expect, it } from "vitest";
import { databasePasswords, readDatabaseAddress } from "../../src/core/database-address.ts";

describe("the address of a database", () => {
  it.each([
    ["one host", "postgresql://u:p@h/d?sslmode=verify-full"],
    ["a socket in a parameter", "postgresql://u@localhost:5432/d?host=%2Ftmp%2Fa"],
    ["a socket in the place of the host", "postgresql://u:p@%2Ftmp%2Fa/d"],
    ["no host", "postgresql:///d?host=/tmp/a"],
  ])("a database address with %s stays as it is", (_, address) => {
    expect(readDatabaseAddress(address)).toEqual({ urls: [address] });
  });

  it.each([
    [
      "between commas",
      "postgresql://u:p%40@h1:5432,h2/d?target_session_attrs=read-write&sslmode=verify-full",
      [
        "postgresql://u:p%40@h1:5432/d?sslmode=verify-full",
        "postgresql://u:p%40@h2/d?sslmode=verify-full",
      ],
    ],
    [
      "of IPv6",
      "postgres://u@[::1]:1,[fe80::2]:2/d",
      ["postgres://u@[::1]:1/d", "postgres://u@[fe80::2]:2/d"],
    ],
    [
      "in parameters, with a port each",
      "postgresql://u@/d?host=h1,h2&port=1,2",
      ["postgresql://u@/d?host=h1&port=1", "postgresql://u@/d?host=h2&port=2"],
    ],
    [
      "in parameters, with one port for all",
      "postgresql://u@/d?host=h1,h2&port=6432",
      ["postgresql://u@/d?host=h1&port=6432", "postgresql://u@/d?host=h2&port=6432"],
    ],
  ])(
    "a database address with several hosts %s becomes one address for each",
    (_, address, urls) => {
      expect(readDatabaseAddress(address)).toEqual({ urls });
    },
  );

  it.each([
    ["mysql://u@h1,h2/d", "must be the address of a PostgreSQL server"],
    ["postgresql://u@h1,h2:x/d", "must be the address of a PostgreSQL server"],
    ["postgresql://u@h1,[/d", "must be the address of a PostgreSQL server"],
    ["postgresql://u@/d?host=a,b,c&port=1,2", "has 3 hosts and 2 ports"],
    ["postgresql://u@h1,h2/d?target_session_attrs=standby", "must be read-write"],
  ])("the database address %s is refused with what to write", (address, message) => {
    const read = readDatabaseAddress(address);
    expect("problem" in read && read.problem).toContain(message);
  });

  it("tells its password in every form, so that no log shows it", () => {
    expect(databasePasswords("postgresql://u:a%40b@h1:1,h2:2/d")).toEqual(
      expect.arrayContaining(["a%40b", "a@b"]),
    );
    expect(databasePasswords("postgresql://h/d?user=u&password=a%40b")).toContain("a@b");
  });
});
