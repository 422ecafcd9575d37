/** What a charge is computed of, beside tokens and price, and which prices each model has had. */
import { Migration } from "@mikro-orm/migrations";

/**
 * discount_bp: hundredths of a percent. charged: whether the usage was charged at all; else the call was for
 * nothing, whatever it used. second_micros: microseconds of film or sound. Null in records of older versions,
 * which may still be writing while this one starts, and images and second_micros where there are none.
 */
const call = `
alter table "call"
  add column "discount_bp" smallint null,
  add column "charged" boolean null,
  add column "images" integer null,
  add column "second_micros" bigint null`;

/** from_time: since when it counts, as the configuration says; null: always. load_time: when it was first seen. */
const modelPrice = `
create table "model_price" (
  "model" text not null,
  "version" text not null,
  "from_time" timestamptz null,
  "load_time" timestamptz not null default now(),
  constraint "model_price_pkey" primary key ("model", "version")
)`;

export class CallPrice0007 extends Migration {
  override up(): void {
    this.addSql(call);
    this.addSql(modelPrice);
  }
}
