/**
 * Texts in the world's scripts and in the forms that programs send: what the byte bound is held
 * against.
 */

/** Article 1 of the Universal Declaration of Human Rights, and the like. */
export const scripts: Readonly<Record<string, string>> = {
  English:
    "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should act towards one another in a spirit of brotherhood.",
  German:
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
  French:
    "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
  Spanish:
    "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y conciencia, deben comportarse fraternalmente los unos con los otros.",
  Turkish:
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
  Vietnamese:
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được tạo hoá ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.",
  Russian:
    "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.",
  Greek:
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση.",
  Armenian:
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։ Նրանք ունեն բանականություն ու խիղճ։",
  Georgian:
    "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. მათ მინიჭებული აქვთ გონება და სინდისი.",
  Hebrew: "כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון.",
  Arabic:
    "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء.",
  Persian:
    "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. همه دارای عقل و وجدان هستند.",
  Hindi:
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है।",
  Bengali: "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি আছে।",
  Tamil: "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும் உரிமைகளிலும் சமமானவர்கள்.",
  Telugu: "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు.",
  Thai: "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม",
  Amharic: "የሰው፡ልጅ፡ሁሉ፡ሲወለድ፡ነጻና፡በክብርና፡በመብትም፡እኩልነት፡ያለው፡ነው።",
  Khmer: "មនុស្សទាំងអស់កើតមកមានសេរីភាពនិងសមភាពក្នុងសេចក្តីថ្លៃថ្នូរនិងសិទ្ធិ។",
  "Chinese, simplified":
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
  "Chinese, traditional":
    "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神互相對待。",
  Japanese:
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。カタカナも。",
  Korean:
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
  emoji: "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 👍🏿 🧑🏾‍🚀 🇩🇪🇯🇵 ❤️‍🔥 😀😂🥲🤔🙄 ☀️🌧️⛄ ✅❌⚠️ 🎉🎂🎁 🚀🛰️",
};

/** Texts that programs send. */
export const forms: Readonly<Record<string, string>> = {
  code: `export async function settle(this: Run): Promise<void> {\n  const { call } = this;\n  for (let i = 0; i < call.parts.length; i++) {\n    if (call.parts[i]?.kind !== "text") continue;\n    await this.ledger.settle({ id: call.id, costNanos: 1_000n });\n  }\n}\n`,
  SQL: "select h.id, coalesce(sum(e.amount), 0) from hold h left join ledger_entry e on e.txn_id = h.id where h.state = 1 group by h.id order by 2 desc limit 100;",
  JSON: JSON.stringify({
    items: [
      { id: 17, name: "Ada", tags: ["a", "b"], price: 12.5, active: true, parent: null },
      { id: 18, name: "Grace", tags: [], price: 0.25, active: false, parent: 17 },
    ],
    next_page_token: "eyJpZCI6MTh9",
  }),
  "JSON, indented": JSON.stringify({ a: { b: { c: [1, 2, 3], d: "text" }, e: false } }, null, 2),
  CSV: "date,open,high,low,close,volume\n2026-01-02,101.25,103.5,99.875,102.0,1894423\n2026-01-05,102.0,104.75,101.5,104.25,2048113\n",
  vector: "[0.0123,-0.4567,0.8901,-0.2345,0.6789,0.1011,-0.1213,0.1415,-0.1617]",
  "lists of digits": "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0",
  HTML: '<div class="row"><a href="/a?b=c&amp;d=e" title="x">text</a><br/><img src="i.png" alt=""/></div>',
  log: "2026-01-02T03:04:05.678Z ERROR [worker-17] java.lang.IllegalStateException: no such key (0x7ffdeadbeef)\n\tat com.example.Main.run(Main.java:42)\n",
  URL: "https://example.com/a/b/c?utm_source=newsletter&utm_medium=email&id=550e8400-e29b-41d4-a716-446655440000#top",
  markdown: "# Title\n\n- **bold** and _soft_\n- [x] `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
  base64:
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  LaTeX: "\\int_{0}^{\\infty} e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}",
  spaces: `a${" ".repeat(400)}b\n\n\n\t\t\tc`,
  dashes: "=".repeat(80) + "-".repeat(80),
};
